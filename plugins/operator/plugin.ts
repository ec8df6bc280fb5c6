import { Type as t, type TProperties } from 'typebox'
import { bounds, operator } from '#contracts/operator.ts'
import {
  Authenticators,
  command,
  definePlugin,
  into,
  PluginFiles,
  Plugins,
  type PluginStatus,
  type PluginRegistry,
} from '#kernel'
import { SystemClock } from '#ports/clock.ts'
import { Storage } from '#ports/storage.ts'
import { adapterCommands } from './adapters.ts'
import { backupCommand, restoreCommand } from './backup.ts'
import { copyCommand } from './copy/command.ts'
import { createInstaller, type Installer } from './packages/plugin-installer.ts'
import { across, StoredPackages, Parts } from './packages/package-store.ts'
import { isToken } from './token.ts'

const named = t.Object(
  { name: t.String({ 'x-operand': true, description: 'Of the plugin.' }) },
  { additionalProperties: false },
)
const placed = <P extends TProperties>(description: string, more: P) =>
  t.Object(
    { path: t.String({ 'x-operand': true, description }), ...more },
    { additionalProperties: false },
  )
const apart = t.Optional(t.Boolean({ description: 'None of its code runs in the process.' }))
const wire = (plugin: PluginStatus) => ({
  ...plugin,
  organisations: plugin.organisations && [...plugin.organisations],
})
const none = t.Object({}, { additionalProperties: false })

const isolating = t.Object(
  {
    name: named.properties.name,
    in: t.Union([t.Literal('thread'), t.Literal('process')], {
      'x-operand': true,
      description: 'thread or process.',
    }),
    ...bounds,
  },
  { additionalProperties: false },
)
const boundsOf = ({
  in: place,
  memory_mb,
  stall_ms,
}: {
  in: 'thread' | 'process'
  memory_mb: number
  stall_ms: number
}) => (place === 'thread' ? { memory_mb, stall_ms } : null)

export default definePlugin({
  name: 'operator',
  version: '1.0.0',
  kernel: '^1.0.0',
  mount: 'v1',
  contract: operator,
  uses: { plugins: Plugins, storage: Storage, clock: SystemClock },
  collections: [StoredPackages, Parts],
  system: [across],
  may: { plugins: 'what operators choose', installation: 'copies of it, and its adapters' },
  config: t.Object({
    token: t.Optional(
      t.String({
        minLength: 32,
        maxLength: 1000,
        'x-secret': true,
        description:
          'Opens the operations under /operator to whoever has it; without it they are ' +
          'closed. 32 characters or more.',
      }),
    ),
    data_dir: t.String({
      default: './data',
      'x-env': 'DATA_DIR',
      description:
        'Plugins from npm are installed in its folder packages, each version in one of its own.',
    }),
    auth_secret: t.Optional(
      t.String({
        minLength: 32,
        maxLength: 1000,
        'x-env': 'AUTH_SECRET',
        'x-secret': true,
        description:
          'Vouches for packages of plugins, which go through the storage to every process ' +
          'with the same secret; without it they stay in DATA_DIR.',
      }),
    ),
  }),
  services: { installer: createInstaller },
  routes: {
    'GET /operator/plugins': ({ plugins }) => ({ items: plugins.list().map(wire) }),
    'POST /operator/plugins': ({ plugins, body }) =>
      plugins.load(body.source, body.isolated ? { isolated: body.isolated } : {}).then(wire),
    'POST /operator/plugins/{name}/reload': ({ plugins, params }) =>
      plugins.reload(params.name).then(wire),
    'POST /operator/plugins/{name}/rollback': ({ plugins, params }) =>
      plugins.rollback(params.name).then(wire),
    'PUT /operator/plugins/{name}/organisations': ({ plugins, params, body }) =>
      plugins.enable(params.name, body.organisations).then(wire),
    'PUT /operator/plugins/{name}/isolation': ({ plugins, params, body }) =>
      plugins.isolate(params.name, boundsOf(body)).then(wire),
    'DELETE /operator/plugins/{name}': ({ plugins, params }) =>
      plugins.unload(params.name).then(() => undefined),
  },
  commands: {
    'plugins list': command({
      summary: 'Which plugins serve, which are out, and which failed.',
      options: none,
      run: async ({ plugins }: { plugins: PluginRegistry }) => ({ plugins: plugins.list() }),
    }),
    'plugins load': command({
      summary:
        'Serves a plugin from a folder or file, or one that was unloaded; --isolated: in a ' +
        'thread, from its first line on.',
      options: placed('A folder, a file, or the name of a plugin that was unloaded.', {
        isolated: apart,
        ...bounds,
      }),
      run: ({ plugins }: { plugins: PluginRegistry }, { path, isolated, ...given }) =>
        plugins.load(path, isolated ? { isolated: given } : {}),
    }),
    'plugins reload': command({
      summary: 'Reads a plugin again from its files; a failure leaves the old one serving.',
      options: named,
      needsServer: true,
      run: ({ plugins }: { plugins: PluginRegistry }, { name }) => plugins.reload(name),
    }),
    'plugins rollback': command({
      summary: 'Serves the generation before again.',
      options: named,
      needsServer: true,
      run: ({ plugins }: { plugins: PluginRegistry }, { name }) => plugins.rollback(name),
    }),
    'plugins unload': command({
      summary: 'Takes a plugin out, also at the next start.',
      options: named,
      run: ({ plugins }: { plugins: PluginRegistry }, { name }) => plugins.unload(name),
    }),
    'plugins add': command({
      summary:
        'Installs a package (name@version, or a tarball) and serves it, in place of the ' +
        'version that serves now. Its install scripts are not run.',
      options: t.Object(
        { package: t.String({ 'x-operand': true, description: 'As npm takes it.' }) },
        { additionalProperties: false },
      ),
      run: ({ installer }: { installer: Installer }, given) => installer.add(given.package),
    }),
    'plugins remove': command({
      summary: 'Takes a plugin that was added out, and its folders away.',
      options: named,
      run: ({ installer }: { installer: Installer }, { name }) => installer.remove(name),
    }),
    'plugins enable': command({
      summary: 'Says for which organisations a plugin is: ids with commas between them, or all.',
      options: t.Object(
        {
          name: named.properties.name,
          organisations: t.String({
            'x-operand': true,
            pattern: '^(all|[0-9a-f-]{36}(,[0-9a-f-]{36})*)$',
            description: 'Ids with commas between them, or all.',
          }),
        },
        { additionalProperties: false },
      ),
      run: ({ plugins }: { plugins: PluginRegistry }, { name, organisations }) =>
        plugins.enable(name, organisations === 'all' ? null : organisations.split(',')),
    }),
    'plugins isolate': command({
      summary:
        'Runs a plugin in a thread of its own, or in the process again. A thread keeps ' +
        'slips away from others; it is no security boundary.',
      options: isolating,
      run: ({ plugins }: { plugins: PluginRegistry }, { name, ...given }) =>
        plugins.isolate(name, boundsOf(given)),
    }),
    'plugins check': command({
      summary: 'Would this plugin load beside the others? Changes nothing.',
      options: placed('A folder or a file.', { isolated: apart }),
      run: ({ plugins }: { plugins: PluginRegistry }, { path, isolated }) =>
        plugins.check(path, isolated ? { isolated: true } : {}),
    }),
    backup: backupCommand,
    ...adapterCommands,
    'storage copy': copyCommand,
    restore: restoreCommand,
  },
  contributes: [
    into(PluginFiles, ({ installer }: { installer: Installer }) => installer.files),
    into(Authenticators, ({ config }: { config: { token?: string } }) => ({
      kind: 'operator',
      // No organisation: whatever asks for a tenant's data with this caller fails.
      authenticate: headers =>
        isToken(headers['authorization'], config.token)
          ? { userId: 'operator', orgId: '', role: 'operator' }
          : undefined,
    })),
  ],
})
