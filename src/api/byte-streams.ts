/**
 * @file Where bytes come from and go to in browsers and elsewhere, by the few methods that are used of each, so that no types
 * of a page are needed: blobs, responses, file handles and streams.
 */
import { grouped } from "../base/errors.ts";
import { badFile } from "../formats/safetensors.ts";
import { describe, fail } from "../trace/arguments.ts";

/** A `ReadableStream` of bytes. */
export interface ByteStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
    cancel(reason?: unknown): Promise<void>;
  };
}

/** A `Blob` or `File`. */
export interface BlobLike {
  readonly size: number;
  stream(): ByteStream;
}

/** A `Response` of `fetch`. */
export interface ResponseLike {
  readonly ok: boolean;
  readonly status: number;
  readonly body: ByteStream | null;
}

/** A `FileSystemFileHandle`, of which `getFile` is used to read. */
export interface FileToRead {
  getFile(): Promise<BlobLike>;
}

/** Where files are read from. */
export type ByteSource = BlobLike | ResponseLike | FileToRead | ByteStream;

/** A `WritableStream`. */
export interface WritableLike {
  getWriter(): ByteWriter;
}

/** A `FileSystemFileHandle`, of which `createWritable` is used to write. */
export interface FileToWrite {
  createWritable(): Promise<ByteWriter>;
}

/** Where files are written to. */
export type ByteSink = WritableLike | FileToWrite;

/** What is written gets its name when it is closed; aborted, nothing has changed. */
export interface ByteWriter {
  write(part: Uint8Array): Promise<void>;
  close(): Promise<void>;
  abort(reason?: unknown): Promise<void>;
}

export async function sinkOf(sink: ByteSink): Promise<ByteWriter> {
  const methods = (sink ?? {}) as Partial<WritableLike & FileToWrite>;
  if (typeof methods.createWritable === "function") return methods.createWritable();
  if (typeof methods.getWriter === "function") return methods.getWriter();
  return fail("InvalidArgument", `saveTo: cannot write to ${describe(sink)}`, "give a file handle or a WritableStream");
}

async function openSource(source: ByteSource): Promise<{ stream: ByteStream; bytes: number | undefined }> {
  const methods = (source ?? {}) as Partial<BlobLike & ResponseLike & FileToRead & ByteStream>;
  if (typeof methods.getFile === "function") return openSource(await methods.getFile());
  if (typeof methods.getReader === "function") return { stream: methods as ByteStream, bytes: undefined };
  if (typeof methods.stream === "function") return { stream: methods.stream(), bytes: methods.size };
  if (typeof methods.status === "number" && methods.body !== undefined) {
    if (!methods.ok || !methods.body) {
      throw badFile(`the server answered ${methods.status} and no file`, "check the address of the file");
    }
    return { stream: methods.body, bytes: undefined };
  }
  const help = "give a Blob, a Response, a FileSystemFileHandle or a ReadableStream; load takes a Uint8Array";
  return fail("InvalidArgument", `loadFrom: cannot read ${describe(source)}`, help);
}

/** Bytes of a source in order, as many at a time as are asked for. */
export class ByteReader {
  /** Of all of it, where that is known before it is read. */
  readonly bytes: number | undefined;
  readonly #reader: ReturnType<ByteStream["getReader"]>;
  #rest: Uint8Array = new Uint8Array(0);
  #ended = false;

  private constructor(stream: ByteStream, bytes: number | undefined) {
    this.bytes = bytes;
    this.#reader = stream.getReader();
  }

  static async of(source: ByteSource): Promise<ByteReader> {
    const { stream, bytes } = await openSource(source);
    return new ByteReader(stream, bytes);
  }

  /** False at the end of the source. */
  async #more(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#ended) {
      const { done, value } = await this.#reader.read();
      if (done) this.#ended = true;
      else if (value) this.#rest = value;
    }
    return this.#rest.length > 0;
  }

  async take(count: number): Promise<Uint8Array> {
    const taken = new Uint8Array(count);
    let done = 0;
    while (done < count) {
      if (!(await this.#more())) {
        throw badFile(`the file ends ${grouped(count - done)} bytes before its header says: it was cut off`);
      }
      const part = this.#rest.subarray(0, count - done);
      taken.set(part, done);
      done += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    return taken;
  }

  /** Throws where there is something after what was taken. */
  async requireEnd(): Promise<void> {
    if (await this.#more()) throw badFile("there are bytes after the last tensor");
  }

  /** Lets go of a source that was not read to its end. */
  async close(): Promise<void> {
    if (!this.#ended) await this.#reader.cancel();
  }
}
