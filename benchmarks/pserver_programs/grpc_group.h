#pragma once

// Servers and workers by gRPC, which move bytes and do nothing with them: what comes, either side copies into
// memory of its own, as whoever uses it would.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "processes.h"

namespace bench {

// The bytes themselves, which outlive it: nothing is copied.
grpc::ByteBuffer view(const std::vector<char>& bytes);

// Serves until it goes. A call of a method is answered with so many bytes as `answers` says; requests have at
// most `largest` bytes.
class GrpcServer {
 public:
  GrpcServer(std::size_t largest, const std::map<std::string, std::size_t>& answers);
  ~GrpcServer();
  // Tells the workers, who are made meanwhile, where it is.
  void meet(Meeting& meeting) const { (void)meeting.exchange(std::to_string(port_)); }

 private:
  class Answer;
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

class GrpcWorker {
 public:
  // Of the servers that meet, the last `servers` of all. Answers have at most `largest` bytes.
  GrpcWorker(Meeting& meeting, int servers, std::size_t largest);
  std::size_t servers() const { return stubs_.size(); }
  // To all servers at once, to each its request; ends when all have answered.
  void call(const char* method, std::vector<grpc::ByteBuffer> requests);

 private:
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::vector<char>> answers_;
};

}  // namespace bench
