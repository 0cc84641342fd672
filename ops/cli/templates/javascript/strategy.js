export const choose = (legal) => legal[Math.floor(Math.random() * legal.length)];
