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
  type PluginContext,
  type Plugin,
  type Point,
} from './plugin.ts'
export {
  Host,
  Broadcast,
  Plugins,
  type Check,
  type KernelInfo,
  type PluginStatus,
  type MountedOperation,
  type Broadcasting,
  type Role,
  type PluginRegistry,
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
} from './commands.ts'
export { fault, hasCode, isFault, type Fault, type FaultCode } from '#contracts/faults.ts'
export { createValidator, type Validator } from './validation/validate.ts'
export { port, type Json, type Token } from '#ports/token.ts'
