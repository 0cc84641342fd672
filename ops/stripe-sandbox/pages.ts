import type { Books, Thing } from './books.js';

const safe = (value: unknown): string => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const money = ({ amount_total, amount, currency }: Thing): string =>
  `${(Number(amount_total ?? amount) / 100).toFixed(2)} ${String(currency).toUpperCase()}`;

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${safe(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; color: #222 }
form { display: inline } table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem .3rem 0 }
button { font: inherit; padding: .4rem 1rem; margin-right: .5rem; cursor: pointer } .note { color: #777; font-size: .9rem }
</style>
<h1>${safe(title)}</h1>
${body}
<p class="note">This is Agon's stand-in for Stripe, on this machine alone. No card is charged and no money moves.</p>
</html>`;

const button = (action: string, label: string, fields: Record<string, string> = {}): string => {
  const hidden = Object.entries(fields).map(([k, v]) => `<input type="hidden" name="${k}" value="${safe(v)}">`);
  return `<form method="post" action="${safe(action)}">${hidden.join('')}<button>${safe(label)}</button></form>`;
};

export function checkoutPage(session: Thing, declined: boolean): string {
  const { id, title, status, cancel_url: back } = session;
  if (status !== 'open') return page('Checkout', `<p>This checkout is ${safe(status)}.</p>`);
  const monthly = session.mode === 'subscription' ? ' a month' : '';
  return page(
    'Checkout',
    `${declined ? '<p role="alert"><strong>The card was declined.</strong> Nothing was paid.</p>' : ''}
<p>${safe(title)}: <strong>${safe(money(session))}${monthly}</strong></p>
<p>${button(`/pay/${id}/pay`, 'Pay')}${button(`/pay/${id}/decline`, 'Decline')}</p>
${back ? `<p><a href="${safe(back)}">Back without paying</a></p>` : ''}`,
  );
}

export function onboardingPage(account: Thing, returnUrl: string): string {
  if (account.payouts_enabled) {
    return page(
      'Payout account',
      `<p>${safe(account.id)} can receive money. <a href="${safe(returnUrl)}">Go on</a></p>`,
    );
  }
  return page(
    'Payout account',
    `<p>Here Stripe would ask who you are and where your bank is.</p>
<p>${button(`/onboard/${account.id}/complete`, 'Complete', { return: returnUrl })}</p>`,
  );
}

/** What Stripe's dashboard is for: seeing payments, refunding them, and playing the bank that disputes them. */
export function dashboardPage(books: Books): string {
  const rows = books.list('payment_intent').map((intent) => {
    const dispute = books.list('dispute').find((each) => each.payment_intent === intent.id);
    const isPaid = intent.status === 'succeeded';
    const actions = [
      ...(isPaid ? [button('/dashboard/refund', 'Refund', { payment_intent: intent.id })] : []),
      ...(isPaid && !dispute ? [button('/dashboard/dispute', 'Dispute', { payment_intent: intent.id })] : []),
      ...(dispute?.status === 'needs_response'
        ? ['won', 'lost'].map((outcome) =>
            button('/dashboard/close-dispute', `Dispute ${outcome}`, { dispute: dispute.id, outcome }),
          )
        : []),
    ];
    const state = dispute ? `dispute: ${dispute.status}` : intent.status;
    return `<tr><td>${safe(intent.id)}<td>${safe(money(intent))}<td>${safe(state)}<td>${actions.join('')}</tr>`;
  });
  const head = '<tr><th>payment<th>amount<th>state<th></tr>';
  const transfers = books.list('transfer').map((transfer) => {
    const undo = transfer.reversed ? 'reversed' : button('/dashboard/reverse', 'Reverse', { transfer: transfer.id });
    return `<li>${safe(transfer.id)}: ${safe(money(transfer))} to ${safe(transfer.destination)} ${undo}</li>`;
  });
  return page(
    'Payments',
    `<table>${head}${rows.join('')}</table><h2>Transfers</h2><ul>${transfers.join('') || '<li>none</li>'}</ul>`,
  );
}
