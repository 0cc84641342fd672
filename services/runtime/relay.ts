import { definePart } from './part.js';

/** Publishes the log to the bus that other processes read. Several agree by a lease on who does. */
export const relay = definePart({
  name: 'relay',
  needs: {},
  start: async (_needs, host) => {
    const [value, log] = await Promise.all([host.engines.relay(), host.engines.log()]);
    const { stop } = host.follow('relay', { ...value, active: () => value.state() !== 'stand-by' }, async () => {
      // One that stands by is of use only while another publishes, and one that cannot begin publishes nothing.
      if (value.state() === 'stand-by' && !(await value.taken())) throw new Error('nobody publishes');
      if (value.state() === 'taking over') throw new Error('publishes nothing yet');
      return log.lastPosition();
    });
    return { value, stop };
  },
});
