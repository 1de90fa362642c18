-- Heartbeats of the members in a file, many a request: arguments {file, heartbeats a request}. Counted by the request.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

function init(args)
  local most = tonumber(args[2])
  local requests, beats = {}, {}
  common.each_member(args[1], function(room, user, epoch)
    beats[#beats + 1] = string.format('{"roomId":"%s","userId":"%s","epoch":%s}', room, user, epoch)
    if #beats == most then
      requests[#requests + 1] = common.post("/heartbeats", '{"heartbeats":[' .. table.concat(beats, ",") .. "]}")
      beats = {}
    end
  end)
  request = common.cycle(requests)
end

function done(summary, latency) common.report(summary, latency) end
