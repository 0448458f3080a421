// Conversations in the browser's IndexedDB: short heads for the list, and bodies. A body has a version, so that two tabs with the same
// conversation notice each other.

const NAME = "latte";
const HEADS = "heads";
const BODIES = "bodies";
const OPEN_MS = 5000;

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

const finished = (transaction) => new Promise((resolve, reject) => {
  transaction.oncomplete = resolve;
  transaction.onabort = transaction.onerror = () => reject(transaction.error);
});

// crypto.randomUUID exists only on loopback and with TLS.
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Database {
  // Throws where the browser keeps nothing, for example in some private windows.
  static async open() {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(HEADS, { keyPath: "id" });
      request.result.createObjectStore(BODIES, { keyPath: "id" });
    };
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error("no answer")), OPEN_MS)); // another program may block it
    const database = await Promise.race([done(request), late]);
    database.onversionchange = () => database.close();
    return new Database(database);
  }

  constructor(database) {
    this.database = database;
  }

  write() {
    // A power cut must not lose what the page says it has kept.
    return this.database.transaction([HEADS, BODIES], "readwrite", { durability: "strict" });
  }

  // [{id, title, changed}], newest first
  async heads() {
    const heads = await done(this.database.transaction(HEADS).objectStore(HEADS).getAll());
    return heads.sort((a, b) => b.changed - a.changed);
  }

  // {id, version, title, model, system, created, changed, messages}; undefined: gone
  body(id) {
    return done(this.database.transaction(BODIES).objectStore(BODIES).get(id));
  }

  // Writes it if the stored version is the one that `body` comes from; otherwise writes a copy. body.version: 0 if it was never stored.
  // → the id and version that it has now
  async put(body) {
    const transaction = this.write();
    const bodies = transaction.objectStore(BODIES);
    const stored = await done(bodies.get(body.id));
    const isOther = stored !== undefined && stored.version !== body.version;
    const kept = isOther ? { ...body, id: newId(), version: 1, title: `${body.title} (copy)` } : { ...body, version: body.version + 1 };
    bodies.put(kept);
    transaction.objectStore(HEADS).put({ id: kept.id, title: kept.title, changed: kept.changed });
    await finished(transaction);
    return { id: kept.id, version: kept.version, title: kept.title };
  }

  async rename(id, title) {
    const transaction = this.write();
    const bodies = transaction.objectStore(BODIES);
    const body = await done(bodies.get(id));
    if (body) {
      bodies.put({ ...body, title });
      transaction.objectStore(HEADS).put({ id, title, changed: body.changed });
    }
    await finished(transaction);
  }

  async remove(id) {
    const transaction = this.write();
    transaction.objectStore(HEADS).delete(id);
    transaction.objectStore(BODIES).delete(id);
    await finished(transaction);
  }

  async clear() {
    const transaction = this.write();
    transaction.objectStore(HEADS).clear();
    transaction.objectStore(BODIES).clear();
    await finished(transaction);
  }
}
