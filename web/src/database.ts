// The page's storage: the device's key and token, and messages that the gateway has not
// confirmed. If the browser offers none (some private windows), it lasts as long as the tab.

const stores = ["device", "outbox"] as const;
type Store = (typeof stores)[number];

const memory: Record<Store, Map<string, unknown>> = { device: new Map(), outbox: new Map() };
let opened: Promise<IDBDatabase | null> | undefined;

function open(): Promise<IDBDatabase | null> {
  opened ??= new Promise((resolve) => {
    let request: IDBOpenDBRequest;
    try {
      request = indexedDB.open("chela", 1);
    } catch {
      resolve(null);
      return;
    }
    request.onupgradeneeded = () => stores.forEach((s) => request.result.createObjectStore(s));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(null);
  });
  return opened;
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("storage"));
  });
}

export async function read<T>(store: Store, key: string): Promise<T | undefined> {
  const db = await open();
  if (!db) return memory[store].get(key) as T | undefined;
  return done<T | undefined>(db.transaction(store).objectStore(store).get(key));
}

export async function readAll<T>(store: Store): Promise<T[]> {
  const db = await open();
  if (!db) return [...memory[store].values()] as T[];
  return done<T[]>(db.transaction(store).objectStore(store).getAll());
}

export async function write(store: Store, key: string, value: unknown): Promise<void> {
  const db = await open();
  if (!db) {
    memory[store].set(key, value);
    return;
  }
  await done(db.transaction(store, "readwrite").objectStore(store).put(value, key));
}

/** claim stores a value unless the key has one, and returns the one that is stored. */
export async function claim<T>(store: Store, key: string, value: T): Promise<T> {
  const db = await open();
  if (!db) {
    if (!memory[store].has(key)) memory[store].set(key, value);
    return memory[store].get(key) as T;
  }
  const objects = db.transaction(store, "readwrite").objectStore(store);
  const have = await done<T | undefined>(objects.get(key));
  if (have !== undefined) return have;
  await done(objects.put(value, key));
  return value;
}

export async function remove(store: Store, key: string): Promise<void> {
  const db = await open();
  if (!db) {
    memory[store].delete(key);
    return;
  }
  await done(db.transaction(store, "readwrite").objectStore(store).delete(key));
}
