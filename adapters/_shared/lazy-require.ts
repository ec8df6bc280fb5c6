// `import` of a built-in module evaluates all its exports. For node:http that includes the
// WebSocket client with undici, which keep 13 MiB. `require` evaluates only what is used.
import { createRequire } from 'node:module'

export const lazyRequire = createRequire(import.meta.url)
