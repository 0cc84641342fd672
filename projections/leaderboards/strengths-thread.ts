import { parentPort, workerData } from 'node:worker_threads';
import { seededRandom, strengthsOf } from './bradley-terry.js';
import type { StrengthsOrder } from './strengths.js';

const { pairs, seed } = workerData as StrengthsOrder;
parentPort?.postMessage(strengthsOf(pairs, { random: seededRandom(seed) }));
