// The calls of the server. Each gives a value of JSON, or throws what the server says is wrong.

/** What is wrong with a call: `error` has kind, message, and for mistakes in queries start, end and hint. */
export class CallError extends Error {
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

async function answered(response) {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("application/json")) {
    throw new CallError({ kind: "Server", message: await response.text() });
  }
  const value = await response.json();
  if (!response.ok) throw new CallError(value.error);
  return value;
}

async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new CallError({ kind: "Server", message: "the studio does not answer: it may have ended" });
  }
}

/** Ask what the page begins with. */
export async function begin() {
  return answered(await fetched("/api/begin"));
}

/** Make a call; with `keepalive` it is made even where the page goes away. */
export async function ask(call, values = {}, keepalive = false) {
  return answered(
    await fetched(`/api/${call}`, {
      method: "POST",
      keepalive,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(values),
    }),
  );
}
