// Scoped faces of the ports: no query without an organisation, and nothing beyond what a plugin declares.
export { faceOf, scopeBlobs } from './scoped-ports/face.ts'
export { scopeSearch } from './scoped-ports/passages.ts'
export { scopeStorage, tenantStore } from './scoped-ports/storage.ts'
export { scopeEventlog } from './scoped-ports/streams.ts'
