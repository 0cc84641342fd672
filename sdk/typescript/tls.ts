import { isIP } from 'node:net';
import type { ChannelCredentials } from '@grpc/grpc-js';

/**
 * TLS lets a client name the host that it wants, and an address is no name. @grpc/grpc-js sends whatever it was given,
 * which Node warns of and will refuse. Without a name the certificate is held to the address all the same.
 */
export function namingNoAddress(credentials: ChannelCredentials): ChannelCredentials {
  const connectorOf = credentials._createSecureConnector.bind(credentials);
  credentials._createSecureConnector = (...args) => {
    const connector = connectorOf(...args);
    const { connectionOptions } = connector as { connectionOptions?: { servername?: string } };
    if (connectionOptions?.servername && isIP(connectionOptions.servername) > 0) delete connectionOptions.servername;
    return connector;
  };
  return credentials;
}
