// The clock keeps no process alive: whoever waits for a promise that only a timer settles keeps it.

/**
 * Node ends a process in which nothing but promises is left. It does not until the answer is
 * called.
 */
export function stayAwake(): () => void {
  const { port1: port } = new MessageChannel()
  port.ref()
  return () => port.close()
}
