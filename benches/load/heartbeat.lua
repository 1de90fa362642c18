-- Heartbeats of the members in a file: arguments {file, fraction of it to begin at}.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

function init(args)
  local requests = {}
  common.each_member(args[1], function(room, user, epoch)
    local body = string.format('{"userId":"%s","epoch":%s}', user, epoch)
    requests[#requests + 1] = common.post("/rooms/" .. room .. "/heartbeat", body)
  end)
  request = common.cycle(requests, args[2])
  -- Formatting a long list takes a while; whoever wants to act under load waits for this.
  io.stderr:write("FORMATTED\n")
end

function done(summary, latency) common.report(summary, latency) end
