// What a plugin may import of the kernel.
export {
  Authenticators,
  command,
  definePlugin,
  into,
  PluginFiles,
  point,
  service,
  type Authenticator,
  type Deps,
  type ItemRules,
  type May,
  type Own,
  type Plugin,
  type Point,
} from './plugin.ts'
export {
  Host,
  Broadcast as Peers,
  Plugins,
  type Check,
  type KernelInfo as Introspection,
  type PluginStatus as Listed,
  type MountedOperation,
  type Broadcasting as Peering,
  type Role,
  type PluginRegistry as Roster,
} from './kernel-ports.ts'
export {
  reply,
  type Answer,
  type Bytes,
  type Call,
  type Caller,
  type Reply,
  type Routes,
  type WireEvent,
  type WireEvents,
} from '#contracts/contract.ts'
export {
  offlineCommand,
  type AddedAdapters,
  type Chosen,
  type Installation,
  type OfflineCommand,
} from './cli/commands.ts'
export { fault, hasCode, isFault, type Fault, type FaultCode } from '#contracts/faults.ts'
export { createValidator, type Validator } from './validate.ts'
export { port, type Json, type Token } from '#ports/token.ts'
