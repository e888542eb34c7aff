// bench_pserver_grpc WORKERS SERVERS BYTES STEPS: the same bytes between the same processes by gRPC, which
// sums nothing: each worker calls every server with its part, and is answered with as much; both copy what
// comes into memory of their own. The nanoseconds of worker 0's rounds.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "grpc_bytes.h"
#include "processes.h"

namespace {

using bench::copy_out;
using bench::view;

class Answer final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answer(std::vector<char>& weights) : slot_(weights.size()), answer_(view(weights)) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no request"));
    copy_out(request_, slot_);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  std::vector<char> slot_;
  grpc::ByteBuffer request_, answer_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::size_t bytes) : weights_(bytes, 1) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Answer(weights_);
  }
  std::vector<char> weights_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "bench_pserver_grpc WORKERS SERVERS BYTES STEPS\n");
    return 2;
  }
  const int workers = std::atoi(argv[1]), servers = std::atoi(argv[2]), steps = std::atoi(argv[4]);
  const std::size_t part = std::strtoull(argv[3], nullptr, 10) / static_cast<std::size_t>(servers);
  return bench::run(workers + servers, [&](int index, bench::Meeting& meeting) {
    if (index >= workers) {
      Service service(part);
      int port = 0;
      grpc::ServerBuilder builder;
      builder.SetMaxReceiveMessageSize(-1);
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
      builder.RegisterCallbackGenericService(&service);
      const auto server = builder.BuildAndStart();
      PL_CHECK(server != nullptr, "a gRPC server");
      (void)meeting.exchange(std::to_string(port));
      meeting.barrier();
      return;
    }
    const auto ports = meeting.exchange("");
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
    for (int s = 0; s < servers; ++s) {
      const std::string at = "127.0.0.1:" + std::string(ports[static_cast<std::size_t>(workers + s)].c_str());
      stubs.push_back(std::make_unique<grpc::GenericStub>(
          grpc::CreateCustomChannel(at, grpc::InsecureChannelCredentials(), arguments)));
    }
    std::vector<std::vector<char>> gradients(stubs.size(), std::vector<char>(part, 1)), weights = gradients;
    std::vector<long long> times;
    for (int step = 0; step < steps; ++step) {
      const long long begin = bench::now_ns();
      std::vector<grpc::ClientContext> contexts(stubs.size());
      std::vector<grpc::ByteBuffer> requests, answers(stubs.size());
      for (auto& gradient : gradients) requests.push_back(view(gradient));
      std::atomic<std::size_t> left{stubs.size()};
      std::promise<void> done;
      for (std::size_t s = 0; s < stubs.size(); ++s) {
        stubs[s]->UnaryCall(&contexts[s], "/bench/PushPull", {}, &requests[s], &answers[s],
                            [&, s](const grpc::Status& status) {
                              PL_CHECK(status.ok(), "an answer of a gRPC server");
                              copy_out(answers[s], weights[s]);
                              if (left.fetch_sub(1) == 1) done.set_value();
                            });
      }
      done.get_future().wait();
      times.push_back(bench::now_ns() - begin);
    }
    if (index == 0) bench::print(times);
    meeting.barrier();
  });
}
