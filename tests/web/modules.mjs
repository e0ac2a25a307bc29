// The dashboard's modules for tests in plain Node, which takes a bare `.js` for CommonJS: they are copied next to a
// `package.json` that says otherwise, as there is none among the files that the server embeds.
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const assets = fileURLToPath(new URL("../../src/server/endpoints/dashboard/assets", import.meta.url));

/** The modules by these paths below the assets. */
export async function load(...paths) {
  const copy = await mkdtemp(join(tmpdir(), "mk-web-"));
  try {
    await cp(assets, copy, { recursive: true });
    await writeFile(join(copy, "package.json"), '{"type":"module"}');
    return await Promise.all(paths.map((path) => import(pathToFileURL(join(copy, path)).href)));
  } finally {
    await rm(copy, { recursive: true });
  }
}
