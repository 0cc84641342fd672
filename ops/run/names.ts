/** Every process of a cluster: what `agon run` takes. */
export const processNames = [
  'eventstore',
  'relay',
  'gateway',
  'arena',
  'play',
  'wallet',
  'payments',
  'projections',
  'analytics',
  'runner',
] as const;

export type ProcessName = (typeof processNames)[number];
