// What the URL of the adapter and its variables say.
import { fault } from '#contracts/faults.ts'
import type { AdapterContext } from '#ports/adapter.ts'

const refuse = (field: string, why: string) => fault('INVALID_FIELD', { field, why })

function endpointOf({ searchParams }: URL): URL | undefined {
  const endpoint = searchParams.get('endpoint') ?? undefined
  if (endpoint === undefined) return undefined
  const at = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const isPlain =
    at &&
    ['http:', 'https:'].includes(at.protocol) &&
    at.username === '' &&
    at.password === '' &&
    at.search === ''
  if (!isPlain)
    throw refuse('endpoint', 'must be an http: or https: URL without user, password or query')
  return at
}

/** Undefined: the library looks where AWS puts them, which is web identity, container, instance. */
function credentialsOf(secret: AdapterContext['secret']) {
  const accessKeyId = secret('AWS_ACCESS_KEY_ID')
  const secretAccessKey = secret('AWS_SECRET_ACCESS_KEY')
  const sessionToken = secret('AWS_SESSION_TOKEN')
  if (Boolean(accessKeyId) !== Boolean(secretAccessKey))
    throw refuse(
      accessKeyId ? 'AWS_SECRET_ACCESS_KEY' : 'AWS_ACCESS_KEY_ID',
      'is needed with the other of the two',
    )
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) }
}

/** INVALID_FIELD names the option, or the variable. */
export function s3Settings(url: URL, secret: AdapterContext['secret']) {
  const { searchParams } = url
  const endpoint = endpointOf(url)
  const pathStyle = searchParams.get('pathStyle') ?? 'false'
  if (!['true', 'false'].includes(pathStyle)) throw refuse('pathStyle', 'must be true or false')
  if (url.username !== '' || url.password !== '')
    throw refuse('BLOBS_URL', 'must hold no keys; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY do')
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname))
    throw refuse('BLOBS_URL', 'is written as s3://bucket/prefix?region=…')
  const credentials = credentialsOf(secret)
  const folder = decodeURIComponent(url.pathname).replace(/^\/{1,100}|\/{1,100}$/g, '')
  return {
    bucket: url.hostname,
    prefix: folder === '' ? '' : `${folder}/`,
    client: {
      region: searchParams.get('region') ?? 'us-east-1',
      forcePathStyle: pathStyle === 'true',
      ...(endpoint ? { endpoint: endpoint.href } : {}),
      ...(credentials ? { credentials } : {}),
    },
  }
}
