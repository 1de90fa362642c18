-- Joins of ever new users: arguments {prefix of room ids, rooms, joins in a row for one room}.
-- With one join in a row the rooms take turns; with more, a room is filled before the next begins and the last takes what is left.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

local BODY_START, USER_FORMAT, BODY_END = '{"userId":"', "new-%08d", '","leaseMs":300000}'

function init(args)
  local prefix, rooms, in_a_row = args[1], tonumber(args[2]), tonumber(args[3])
  local sample = BODY_START .. string.format(USER_FORMAT, 0) .. BODY_END
  local heads = {}
  for room = 0, rooms - 1 do
    local whole = common.post("/rooms/" .. prefix .. room .. "/join", sample)
    -- Only the user differs from request to request, and always has the same length.
    heads[room] = whole:sub(1, #whole - #sample) .. BODY_START
  end
  local sent = 0
  request = function()
    local room
    if in_a_row == 1 then room = sent % rooms else room = math.min(math.floor(sent / in_a_row), rooms - 1) end
    sent = sent + 1
    return heads[room] .. string.format(USER_FORMAT, sent) .. BODY_END
  end
end

function done(summary, latency) common.report(summary, latency) end
