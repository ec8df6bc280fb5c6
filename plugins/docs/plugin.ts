import { docs } from '#contracts/ops.ts'
import { openapi } from '#contracts/openapi.ts'
import { definePlugin, Host, type Introspection } from '#kernel'
import { pageOf } from './page.ts'

const documentOf = (host: Introspection) => openapi(host.operations().map(({ key, path, plugin, operation }) => ({ key, path, group: plugin, operation })), host.events(), host.version)

export default definePlugin({
  name: 'docs', version: '1.0.0', kernel: '^1.0.0',
  contract: docs,
  uses: { host: Host },
  routes: {
    'GET /openapi.json': ({ host }) => documentOf(host),
    'GET /docs': ({ host }) => ({ stream: Buffer.from(pageOf(documentOf(host))), mime: 'text/html; charset=utf-8' }),
  },
})
