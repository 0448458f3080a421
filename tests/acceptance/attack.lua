-- What wrk sends: cheap requests, good and bad, one after the other on every connection.
local json = {["Content-Type"] = "application/json"}
local requests = {}

function init()
  requests = {
    wrk.format("GET", "/health"),
    wrk.format("GET", "/v1/models"),
    wrk.format("GET", "/v1/nothing"),
    wrk.format("DELETE", "/v1/models"),
    wrk.format("POST", "/v1/chat/completions", json, "{"),
    wrk.format("POST", "/v1/chat/completions", json, '{"model": "none", "messages": [{"role": "user", "content": "x"}]}'),
    wrk.format("POST", "/v1/completions", json, string.rep("[", 1000)),
    wrk.format("POST", "/v1/completions", {["Content-Type"] = "text/plain"}, "{}"),
    wrk.format("GET", "/metrics"),
    wrk.format("POST", "/tokenize", json, '{"prompt": "' .. string.rep("a story ", 100) .. '"}'),
  }
end

local next_request = 0

function request()
  next_request = next_request % #requests + 1
  return requests[next_request]
end

-- Milliseconds between two requests of a connection: the attack leaves the two processors of a small machine to the
-- server and to the client whose times are measured.
function delay()
  return 20
end
