-- What the loads share. wrk runs one thread here, so `next_request` walks one list and no two connections send the same request at once.
local common = {}

local JSON_HEADERS = { ["Content-Type"] = "application/json" }

function common.post(path, body)
  return wrk.format("POST", path, JSON_HEADERS, body)
end

function common.get(path)
  return wrk.format("GET", path)
end

-- Lines of "room <tab> user <tab> epoch".
function common.each_member(path, visit)
  for line in io.lines(path) do
    local room, user, epoch = line:match("^([^\t]+)\t([^\t]+)\t(%d+)$")
    visit(room, user, epoch)
  end
end

-- Begins at a fraction of the list, so that short runs over a long list do not all repeat its head.
function common.cycle(requests, start)
  local count = #requests
  local position = math.floor(count * (tonumber(start) or 0)) % count
  return function()
    position = position % count + 1
    return requests[position]
  end
end

-- The summary as one line of JSON; `errors.status` counts every answer above 399.
function common.report(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"maxUs":%d,' ..
      '"errors":{"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.status, errors.connect, errors.read, errors.write, errors.timeout))
end

return common
