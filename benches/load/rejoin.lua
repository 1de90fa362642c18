-- Joins of the members in a file: arguments {file, fraction of it to begin at}. Whoever joined once is not asked for again.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

function init(args)
  local requests = {}
  common.each_member(args[1], function(room, user)
    requests[#requests + 1] = common.post("/rooms/" .. room .. "/join", string.format('{"userId":"%s","leaseMs":300000}', user))
  end)
  request = common.cycle(requests, args[2])
end

function done(summary, latency) common.report(summary, latency) end
