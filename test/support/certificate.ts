// A certificate that signs itself, for the tests of encrypted lines.
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'

/** Skips the test where no openssl is installed. */
export const whereOpenssl = <T>(test: T & { readonly skip: T }): T =>
  spawnSync('openssl', ['version']).status === 0 ? test : test.skip

/** Writes a key and its certificate for these names, and returns both paths. */
export function selfSigned(folder: string, names: string): { key: string; cert: string } {
  const key = join(folder, 'key.pem')
  const cert = join(folder, 'cert.pem')
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert],
      ...['-days', '2', '-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`],
    ],
    { stdio: 'ignore' },
  )
  return { key, cert }
}
