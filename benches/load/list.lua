-- Lists of the rooms in a file of members: arguments {file}.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

function init(args)
  local requests, seen = {}, {}
  common.each_member(args[1], function(room)
    if not seen[room] then
      seen[room] = true
      requests[#requests + 1] = common.get("/rooms/" .. room .. "/participants")
    end
  end)
  request = common.cycle(requests)
end

function done(summary, latency) common.report(summary, latency) end
