// A server that speaks S3, in memory: moto. It checks neither keys nor signatures, and has a bucket
// `blobs`.
import { pythonWith } from './python.ts'
import { accepts, started, type Started } from './server.ts'

/** `S3_URL` is a whole BLOBS_URL; each check stores under a prefix of its own. */
export async function startS3(): Promise<Started> {
  const made = await pythonWith('s3')
  if ('why' in made) return made
  const ready = async (port: number) =>
    (await accepts(port)) && (await fetch(`http://127.0.0.1:${port}/blobs`, { method: 'PUT' })).ok
  return started(
    's3',
    ({ port }) => ({
      command: made.python,
      args: ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)],
    }),
    {
      ready,
      url: port => `s3://blobs/?endpoint=http://127.0.0.1:${port}&region=us-east-1&pathStyle=true`,
    },
  )
}
