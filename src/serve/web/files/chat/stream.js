// Requests to the server, and the events of a streamed answer.

const KEY = "latte-key";

export const storedKey = () => sessionStorage.getItem(KEY) ?? "";
export const storeKey = (key) => sessionStorage.setItem(KEY, key);

// status: of HTTP; 0: no answer, or a part of one.
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function errorMessage(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The server answers with status ${response.status}.`;
  }
}

// `path` is relative, so that the page also works below a path of a proxy. Throws ApiError, and AbortError for
// options.signal.
export async function request(path, options = {}) {
  const headers = { ...options.headers, "X-Latte-Page": "1" };
  if (storedKey()) headers.Authorization = `Bearer ${storedKey()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (!response.ok) throw new ApiError(response.status, await errorMessage(response));
  return response;
}

async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}

// The chunks of an answer of the OpenAI API. Throws as request, and ApiError for an error inside the stream.
export async function* streamAnswer(path, body, signal) {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  try {
    for await (const line of lines(response)) {
      if (!line.startsWith("data: ")) continue;
      const data = line.slice("data: ".length).trim();
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(response.status, chunk.error.message);
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
  }
  throw new ApiError(0, "The connection ended before the answer was complete.");
}
