-- Which cell has the room of a request, for Envoy's Lua filter: the header x-leasehold-cell is set to it.
-- The key is the room's slot, the first three hexadecimal digits of the SHA-256 of its id, and the map is
-- the one of `leasehold cell map`, read again when it is older than a second.

local bit = require("bit")
local band, bxor, bnot, ror, rshift = bit.band, bit.bxor, bit.bnot, bit.ror, bit.rshift

local MAP = os.getenv("LEASEHOLD_SLOTS_MAP") or "/etc/envoy/slots.map"

-- The fractions of the square and cube roots of the first primes, as the standard has them.
local function constants()
  local initial, round, n = {}, {}, 2
  local function fraction(x) return math.floor((x - math.floor(x)) * 4294967296) end
  while #round < 64 do
    local prime = true
    for d = 2, math.sqrt(n) do
      if n % d == 0 then prime = false break end
    end
    if prime then
      if #initial < 8 then initial[#initial + 1] = fraction(math.sqrt(n)) end
      round[#round + 1] = fraction(n ^ (1 / 3))
    end
    n = n + 1
  end
  return initial, round
end
local INITIAL, ROUND = constants()

local function word(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return bit.tobit(((a * 256 + b) * 256 + c) * 256 + d)
end

-- The first 32 bits of the SHA-256 of a text.
local function sha256_head(text)
  local bits = #text * 8
  text = text .. "\128" .. ("\0"):rep((55 - #text) % 64) .. "\0\0\0\0"
    .. string.char(math.floor(bits / 16777216) % 256, math.floor(bits / 65536) % 256, math.floor(bits / 256) % 256, bits % 256)
  local state = {unpack(INITIAL)}
  for block = 1, #text, 64 do
    local w = {}
    for i = 1, 16 do w[i] = word(text, block + (i - 1) * 4) end
    for i = 17, 64 do
      local x, y = w[i - 15], w[i - 2]
      w[i] = bit.tobit(w[i - 16] + bxor(ror(x, 7), ror(x, 18), rshift(x, 3)) + w[i - 7] + bxor(ror(y, 17), ror(y, 19), rshift(y, 10)))
    end
    local a, b, c, d, e, f, g, h = unpack(state)
    for i = 1, 64 do
      local t1 = bit.tobit(h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(band(e, f), band(bnot(e), g)) + ROUND[i] + w[i])
      local t2 = bit.tobit(bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + bxor(band(a, b), band(a, c), band(b, c)))
      a, b, c, d, e, f, g, h = bit.tobit(t1 + t2), a, b, c, bit.tobit(d + t1), e, f, g
    end
    for i, v in ipairs({a, b, c, d, e, f, g, h}) do state[i] = bit.tobit(state[i] + v) end
  end
  return state[1]
end

-- The room of a path, decoded; nil where it is of none.
local function room_of(path)
  local id = path:match("^/rooms/([^/?#]+)")
  return id and (id:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

local function slot_of(room)
  return bit.tohex(sha256_head(room)):sub(1, 3)
end

local cells, read_at = {}, 0
local function cell_of(slot)
  if os.time() - read_at >= 1 then
    local file = io.open(MAP)
    if file then
      local fresh = {}
      for line in file:lines() do
        local key, cell = line:match("^(%x%x%x) (%S+)$")
        if key then fresh[key] = cell end
      end
      file:close()
      cells, read_at = fresh, os.time()
    end
  end
  return cells[slot]
end

function envoy_on_request(handle)
  local headers = handle:headers()
  -- Nobody chooses a cell but the map.
  headers:remove("x-leasehold-cell")
  local room = room_of(headers:get(":path"))
  if not room then return end
  local cell = cell_of(slot_of(room))
  if cell then headers:replace("x-leasehold-cell", cell) end
end
