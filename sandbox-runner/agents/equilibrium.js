// Leduc hold'em close to the equilibrium, which no opponent can beat in the long run. It is not looked up but worked
// out before the first hand, by counterfactual regret minimisation (CFR+) over the whole tree of bets.
const rounds = 100;
const raiseBy = [2, 4];
const ranks = [0, 1, 2];
const nodes = new Map();

const keyOf = (moves, shared) => `${moves[0].join()}/${moves[1].join()}/${shared}`;

// The ways to deal a rank to each side and one to the table, from two cards of each rank.
const ways = (own, other, shared) => 2 * (own === other ? 1 : 2) * (2 - (shared === own) - (shared === other));
const waysUnseen = (own, other) => 8 * (own === other ? 1 : 2);

const strength = (rank, shared) => (rank === shared ? 3 : rank);

// What the first side wins with each rank against each, times the ways to be dealt both; for the second side, mirrored.
function end(value) {
  const first = ranks.flatMap((own) => ranks.map((other) => value(own, other)));
  const second = ranks.flatMap((own) => ranks.map((other) => -value(other, own)));
  return { kind: 'end', wins: [first, second] };
}

const showdown = (paid, shared) =>
  end((own, other) => Math.sign(strength(own, shared) - strength(other, shared)) * paid * ways(own, other, shared));

const fold = (loser, paid, shared) =>
  end(
    (own, other) =>
      (loser === 0 ? -paid : paid) * (shared === null ? waysUnseen(own, other) : ways(own, other, shared)),
  );

function build(moves, round, shared, paid) {
  const made = moves[round];
  const side = made.length % 2;
  const facing = paid[side] < paid[1 - side];
  const next = (move, now) =>
    build(round === 0 ? [[...made, move], []] : [moves[0], [...made, move]], round, shared, now);
  const close = (amount) =>
    round === 1
      ? showdown(amount, shared)
      : {
          kind: 'chance',
          children: ranks.map((rank) =>
            build(moves.with(0, [...made, facing ? 'call' : 'check']), 1, rank, [amount, amount]),
          ),
        };
  const choices = [];
  if (facing) {
    choices.push(['call', close(paid[1 - side])]);
    choices.push(['fold', fold(side, paid[side], shared)]);
  } else {
    choices.push(['check', made.length === 1 ? close(paid[0]) : next('check', paid)]);
  }
  if (made.filter((move) => move === 'raise').length < 2) {
    const now = paid.slice();
    now[side] = paid[1 - side] + raiseBy[round];
    choices.push(['raise', next('raise', now)]);
  }
  const zeros = () => ranks.map(() => choices.map(() => 0));
  const names = choices.map(([name]) => name);
  const node = {
    kind: 'choice',
    side,
    names,
    children: choices.map(([, child]) => child),
    regret: zeros(),
    sum: zeros(),
  };
  nodes.set(keyOf(moves, shared), node);
  return node;
}

// In proportion to the weights, or evenly while they are all nothing.
function shares(weights) {
  let total = 0;
  for (const weight of weights) total += weight;
  const even = 1 / weights.length;
  const found = [even, even, even];
  if (total > 0) for (let choice = 0; choice < weights.length; choice += 1) found[choice] = weights[choice] / total;
  return found;
}

const scaled = (reach, play, choice) => [
  reach[0] * play[0][choice],
  reach[1] * play[1][choice],
  reach[2] * play[2][choice],
];

// The value of a node for each rank of `side`, given how likely each rank of either side gets here. On the way the
// side's regrets and its average play are brought up to date. Written out by rank, because this is where the fuel goes.
function walk(node, side, mine, theirs, turn) {
  if (node.kind === 'end') {
    const [a, b, c] = theirs;
    const w = node.wins[side];
    return [a * w[0] + b * w[1] + c * w[2], a * w[3] + b * w[4] + c * w[5], a * w[6] + b * w[7] + c * w[8]];
  }
  const values = [0, 0, 0];
  if (node.kind === 'chance' || node.side !== side) {
    const play =
      node.kind === 'chance' ? undefined : [shares(node.regret[0]), shares(node.regret[1]), shares(node.regret[2])];
    for (let choice = 0; choice < node.children.length; choice += 1) {
      const reach = play === undefined ? theirs : scaled(theirs, play, choice);
      const found = walk(node.children[choice], side, mine, reach, turn);
      values[0] += found[0];
      values[1] += found[1];
      values[2] += found[2];
    }
    return values;
  }
  const play = [shares(node.regret[0]), shares(node.regret[1]), shares(node.regret[2])];
  const found = [];
  for (let choice = 0; choice < node.children.length; choice += 1) {
    const value = walk(node.children[choice], side, scaled(mine, play, choice), theirs, turn);
    found.push(value);
    values[0] += play[0][choice] * value[0];
    values[1] += play[1][choice] * value[1];
    values[2] += play[2][choice] * value[2];
  }
  for (const rank of ranks) {
    const [regret, sum] = [node.regret[rank], node.sum[rank]];
    for (let choice = 0; choice < found.length; choice += 1) {
      regret[choice] = Math.max(0, regret[choice] + found[choice][rank] - values[rank]);
      sum[choice] += turn * mine[rank] * play[rank][choice];
    }
  }
  return values;
}

export function init({ game }) {
  if (game !== 'leduc-holdem') return;
  const tree = build([[], []], 0, null, [1, 1]);
  for (let turn = 1; turn <= rounds; turn += 1) {
    for (const side of [0, 1]) walk(tree, side, [1, 1, 1], [1, 1, 1], turn);
  }
}

const rankOf = (card) => (card === null ? null : 'JQK'.indexOf(card[0]));

export function act({ board: { card, public: shared, moves } }) {
  const node = nodes.get(keyOf(moves, rankOf(shared)));
  const play = shares(node.sum[rankOf(card)]);
  let pick = Math.random();
  return (
    node.names.find((_name, choice) => {
      pick -= play[choice];
      return pick < 0;
    }) ?? node.names[0]
  );
}
