import { describe, expect, it } from 'vitest';
import { csv } from './statement.js';

describe('comma-separated values', () => {
  it.each([
    ['plain', 'plain'],
    ['', ''],
    ['-12.50', '-12.50'],
    ['1000', '1000'],
    ['=1+1', "'=1+1"],
    ['+cmd', "'+cmd"],
    ['-cmd', "'-cmd"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['=1,"2"', '"\'=1,""2"""'],
    ['a,b', '"a,b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['-1.5=x', "'-1.5=x"],
  ])('write %j as %j', (text, cell) => {
    expect(csv(['head'], [[text]])).toBe(`head\r\n${cell}\r\n`);
  });
});
