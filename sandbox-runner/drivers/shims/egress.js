// Runs inside a sandbox with egress, in front of the shim: whoever connects to the loopback device is connected to the
// socket of the proxy. Node's own clients know nothing of proxies in every version, so they are taught here.
(() => {
  const http = require('node:http');
  const https = require('node:https');
  const net = require('node:net');
  const tls = require('node:tls');
  const proxy = { host: '127.0.0.1', port: 3128 };
  const path = process.env.AGON_EGRESS_SOCKET;

  const relay = net.createServer({ allowHalfOpen: true }, (inside) => {
    const outside = net.connect({ path, allowHalfOpen: true });
    const close = () => {
      inside.destroy();
      outside.destroy();
    };
    inside.on('error', close).pipe(outside);
    outside.on('error', close).pipe(inside);
  });
  relay.on('error', () => {});
  relay.listen(proxy.port, proxy.host).unref();

  const isHere = (host) => host === 'localhost' || host === '127.0.0.1' || host === '::1';
  const direct = new http.Agent();

  // TLS from the agent to its upstream, through a tunnel of the proxy.
  const tunnel = (options, done) => {
    const host = options.hostname || options.host;
    const place = `${net.isIPv6(host) ? `[${host}]` : host}:${options.port || 443}`;
    const request = http.request({ ...proxy, agent: direct, method: 'CONNECT', path: place, headers: { host: place } });
    request.once('error', done);
    request.once('connect', (response, socket) => {
      if (response.statusCode !== 200) {
        socket.destroy();
        const code = response.headers['x-agon-egress'] || 'EGRESS.REFUSED';
        done(new Error(`the egress proxy refused ${place}: ${response.statusCode} ${code}`));
        return;
      }
      const { rejectUnauthorized, ca } = options;
      const servername = net.isIP(host) ? undefined : options.servername || host;
      const secure = tls.connect({ socket, servername, rejectUnauthorized, ca, ALPNProtocols: ['http/1.1'] });
      secure.once('secureConnect', () => {
        secure.off('error', done);
        done(null, secure);
      });
      secure.once('error', done);
    });
    request.end();
  };

  class PlainAgent extends http.Agent {
    addRequest(request, options, ...rest) {
      const host = options.host || 'localhost';
      if (options.socketPath || isHere(host)) return super.addRequest(request, options, ...rest);
      const name = net.isIPv6(host) ? `[${host}]` : host;
      const place = Number(options.port) === 80 ? name : `${name}:${options.port}`;
      if (!/^https?:\/\//.test(request.path)) request.path = `http://${place}${request.path}`;
      return super.addRequest(request, { ...options, ...proxy, path: null }, ...rest);
    }
  }
  class TunnelAgent extends https.Agent {
    createConnection(options, done) {
      tunnel(options, done);
    }
  }
  http.globalAgent = new PlainAgent();
  https.globalAgent = new TunnelAgent();

  // fetch is undici's, which is loaded when it is first used; its dispatcher is found under a well-known symbol.
  const symbol = Symbol.for('undici.globalDispatcher.1');
  const bare = globalThis.fetch;
  let taught = false;
  const teach = () => {
    taught = true;
    void globalThis.Headers;
    const Agent = globalThis[symbol].constructor;
    const connect = (options, done) => {
      if (options.protocol === 'https:') return tunnel(options, done);
      const socket = net.connect({ host: options.hostname, port: options.port || 80 });
      socket.once('error', done);
      socket.once('connect', () => {
        socket.off('error', done);
        done(null, socket);
      });
      return socket;
    };
    class Dispatcher extends Agent {
      dispatch(options, handler) {
        const { protocol, hostname, origin } = new URL(options.origin);
        if (protocol !== 'http:' || isHere(hostname)) return super.dispatch(options, handler);
        const there = { ...options, origin: `http://${proxy.host}:${proxy.port}`, path: `${origin}${options.path}` };
        return super.dispatch(there, handler);
      }
    }
    globalThis[symbol] = new Dispatcher({ connect });
  };
  globalThis.fetch = function fetch(...args) {
    if (!taught) teach();
    return bare.apply(this, args);
  };
})();
