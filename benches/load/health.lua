-- What the server alone can answer: arguments {}.
local common = dofile(os.getenv("BENCH_LOAD_DIRECTORY") .. "/common.lua")

function init() request = common.cycle({ common.get("/healthz") }) end

function done(summary, latency) common.report(summary, latency) end
