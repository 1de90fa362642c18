-- Cursor updates of the members in a file, another position each time round: arguments {file}.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

function init(args)
  local requests = {}
  for line = 1, 2 do
    common.each_member(args[1], function(room, user, epoch)
      local body = string.format('{"userId":"%s","epoch":%s,"cursor":{"line":%d,"column":%d}}',
        user, epoch, line * 10, #requests % 80)
      requests[#requests + 1] = common.post("/rooms/" .. room .. "/cursor", body)
    end)
  end
  request = common.cycle(requests)
end

function done(summary, latency) common.report(summary, latency) end
