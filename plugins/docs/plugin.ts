import { docs } from '#contracts/ops.ts'
import { definePlugin, Host } from '#kernel'
import { createPages } from './pages.ts'

export default definePlugin({
  name: 'docs',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract: docs,
  uses: { host: Host },
  services: { pages: createPages },
  routes: {
    'GET /openapi.json': ({ pages, headers }) => pages.document(headers['if-none-match']),
    'GET /docs': ({ pages, headers }) => pages.page(headers['if-none-match']),
  },
})
