import { MemorySink } from './memory.js';

/** What it commits is done; whoever asked may hear of a broken connection instead. */
export class CutOffSink extends MemorySink {
  answering = true;

  override async commit(...commit: Parameters<MemorySink['commit']>): ReturnType<MemorySink['commit']> {
    const mark = await super.commit(...commit);
    if (!this.answering) throw new Error('Connection terminated unexpectedly');
    return mark;
  }
}
