// bench_pserver_rows_grpc WORKERS SERVERS DIM BATCH STEPS: the bytes that bench_pserver_rows moves, between
// the same processes by gRPC, which looks nothing up and updates nothing: each step a worker asks every
// server for its part of the rows (8 bytes an id there, 4 a float back) and then sends ids and gradients.
// Both copy what comes into memory of their own. Prints as bench_pserver_rows does.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "grpc_bytes.h"
#include "processes.h"
#include "processor_time.h"

namespace {

struct Part {
  std::size_t rows = 0, ids = 0, floats = 0;  // bytes, but for rows
};

class Answer final : public grpc::ServerGenericBidiReactor {
 public:
  Answer(const Part& part, const std::vector<char>& answer)
      : slot_(part.ids + part.floats), answer_(bench::view(answer)) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no request"));
    bench::copy_out(request_, slot_);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  std::vector<char> slot_;
  grpc::ByteBuffer request_, answer_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(const Part& part) : part_(part), rows_(part.floats, 1), nothing_(1) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Answer(part_, context->method() == "/bench/Pull" ? rows_ : nothing_);
  }
  const Part part_;
  const std::vector<char> rows_, nothing_;
};

void serve(const Part& part, int workers, int steps, bench::Meeting& meeting) {
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
  const long long before = bench::used_ns();
  meeting.barrier();
  const std::size_t rows = part.rows * static_cast<std::size_t>(steps) * static_cast<std::size_t>(workers);
  (void)meeting.exchange(paceline::str_cat(bench::used_ns() - before, " ", rows));
}

class Worker {
 public:
  Worker(const Part& part, const std::vector<std::string>& addresses)
      : ids_(part.ids, 1), both_(part.ids + part.floats, 1) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    for (const std::string& at : addresses) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(
          grpc::CreateCustomChannel(at, grpc::InsecureChannelCredentials(), arguments)));
      rows_.emplace_back(part.floats + 1);
    }
  }
  void step() {
    call("/bench/Pull", ids_);
    call("/bench/Push", both_);
  }

 private:
  // To all servers at once.
  void call(const char* method, const std::vector<char>& request) {
    std::vector<grpc::ClientContext> contexts(stubs_.size());
    std::vector<grpc::ByteBuffer> requests(stubs_.size(), bench::view(request)), answers(stubs_.size());
    std::atomic<std::size_t> left{stubs_.size()};
    std::promise<void> done;
    for (std::size_t s = 0; s < stubs_.size(); ++s) {
      stubs_[s]->UnaryCall(&contexts[s], method, {}, &requests[s], &answers[s],
                           [&, s](const grpc::Status& status) {
                             PL_CHECK(status.ok(), "an answer of a gRPC server");
                             bench::copy_out(answers[s], rows_[s]);
                             if (left.fetch_sub(1) == 1) done.set_value();
                           });
    }
    done.get_future().wait();
  }

  std::vector<char> ids_, both_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::vector<char>> rows_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "bench_pserver_rows_grpc WORKERS SERVERS DIM BATCH STEPS\n");
    return 2;
  }
  const int workers = std::atoi(argv[1]), servers = std::atoi(argv[2]), steps = std::atoi(argv[5]);
  const std::size_t dim = std::strtoull(argv[3], nullptr, 10), batch = std::strtoull(argv[4], nullptr, 10);
  const std::size_t rows = batch / static_cast<std::size_t>(servers);
  const Part part{rows, rows * 8, rows * dim * 4};
  return bench::run(workers + servers, [&](int index, bench::Meeting& meeting) {
    if (index >= workers) return serve(part, workers, steps, meeting);
    const auto ports = meeting.exchange("");
    std::vector<std::string> addresses;
    for (int s = 0; s < servers; ++s) {
      addresses.push_back("127.0.0.1:" + std::string(ports[static_cast<std::size_t>(workers + s)].c_str()));
    }
    Worker worker(part, addresses);
    for (int step = 0; step < steps / 10 + 1; ++step) worker.step();
    meeting.barrier();
    std::vector<long long> times;
    for (int step = 0; step < steps; ++step) {
      const long long begin = bench::now_ns();
      worker.step();
      times.push_back(bench::now_ns() - begin);
    }
    meeting.barrier();
    const std::vector<std::string> told = meeting.exchange("");
    if (index == 0) bench::print(times, std::span(told).subspan(static_cast<std::size_t>(workers)));
  });
}
