import { isIP } from 'node:net';
import type { ChannelCredentials } from '@grpc/grpc-js';

/**
 * TLS lets a client name the host that it wants, and an address is no name. @grpc/grpc-js sends whatever it was given,
 * which Node warns of, and refuses from 26 on. Without a name the certificate is held to the address all the same.
 */
export function namingNoAddress(credentials: ChannelCredentials): ChannelCredentials {
  const connectorOf = credentials._createSecureConnector;
  credentials._createSecureConnector = function (this: ChannelCredentials, ...args) {
    const connector = connectorOf.apply(this, args);
    const { connectionOptions } = connector as { connectionOptions?: { servername?: string } };
    if (connectionOptions?.servername && isIP(connectionOptions.servername) > 0) delete connectionOptions.servername;
    return connector;
  };
  return credentials;
}
