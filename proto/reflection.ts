import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { DESCRIPTORS } from './gen/descriptors.js';
import type {
  ServerReflectionRequest,
  ServerReflectionResponse,
  ServerReflectionServer,
} from './gen/grpc/reflection/v1/reflection.js';

type Answer = NonNullable<ServerReflectionResponse['messageResponse']>;

/** Answers for tools that ask a server what it serves, like grpcurl. */
export function reflection(names: readonly string[]): ServerReflectionServer {
  const { file: files } = fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTORS, 'base64'));
  const answer = (request: ServerReflectionRequest['messageRequest']): Answer => {
    switch (request?.$case) {
      case 'listServices':
        return { $case: 'listServicesResponse', listServicesResponse: { service: names.map((name) => ({ name })) } };
      case 'fileByFilename':
        return described(files.find(({ name }) => name === request.fileByFilename));
      case 'fileContainingSymbol':
        return described(
          files.find((file) => symbolsOf(file).some((symbol) => isIn(request.fileContainingSymbol, symbol))),
        );
      default:
        return refused(status.UNIMPLEMENTED, 'This is not answered here.');
    }
  };
  return {
    serverReflectionInfo: (call) => {
      call.on('data', (request: ServerReflectionRequest) => {
        const messageResponse = answer(request.messageRequest);
        call.write({ validHost: request.host, originalRequest: request, messageResponse });
      });
      call.on('end', () => call.end()).on('error', () => {});
    },
  };
}

const symbolsOf = ({ package: name, service, messageType, enumType }: FileDescriptorProto) =>
  [...service, ...messageType, ...enumType].map((each) => `${name}.${each.name}`);

/** A method or a field belongs to the file of what holds it. */
const isIn = (symbol: string, holder: string) => symbol === holder || symbol.startsWith(`${holder}.`);

function described(file: FileDescriptorProto | undefined): Answer {
  if (!file) return refused(status.NOT_FOUND, 'There is no such file or symbol.');
  const fileDescriptorProto = [Buffer.from(toBinary(FileDescriptorProtoSchema, file))];
  return { $case: 'fileDescriptorResponse', fileDescriptorResponse: { fileDescriptorProto } };
}

const refused = (errorCode: number, errorMessage: string): Answer => ({
  $case: 'errorResponse',
  errorResponse: { errorCode, errorMessage },
});
