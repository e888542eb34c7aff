// The suite of all transports, on NCCL: its data is carried to the GPUs of the tests and back.

#include "base/status.h"
#include "runtime/collective/call_communicator.h"
#include "runtime/collective/fabric.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::collective {

namespace {

using nccl::NcclCommunicator;

// What the suite hands over lies in the host's memory.
class Carrying final : public CallCommunicator {
 public:
  Carrying(nccl::Gpu& gpu, std::unique_ptr<NcclCommunicator> nccl, const Clock& clock)
      : gpu_(gpu), nccl_(std::move(nccl)), clock_(clock) {}

  int rank() const override { return nccl_->rank(); }
  int world_size() const override { return nccl_->world_size(); }
  Generation generation() const override { return nccl_->generation(); }
  void close(absl::Status reason) override { nccl_->close(std::move(reason)); }
  absl::Status closed() const override { return nccl_->closed(); }
  Counters counters() const override { return nccl_->counters(); }

 private:
  absl::Status run(const Call& call, Deadline deadline) override {
    PL_RETURN_IF_ERROR(gpu_.context->enter());
    const std::span<std::byte> data(call.data, call.bytes());
    PL_ASSIGN_OR_RETURN(const cuda::DeviceBuffer there,
                        cuda::DeviceBuffer::create(gpu_.context, data.size()));
    PL_RETURN_IF_ERROR(gpu_.stream->to_device(there.address(), data));
    PL_RETURN_IF_ERROR(gpu_.stream->finish(clock_, deadline));
    PL_RETURN_IF_ERROR(run_there(call, there.address(), deadline));
    PL_RETURN_IF_ERROR(gpu_.stream->to_host(data, there.address()));
    return gpu_.stream->finish(clock_, deadline);
  }
  absl::Status run_there(const Call& call, void* data, Deadline deadline) {
    switch (call.kind) {
      case Kind::kAllReduce:
        return nccl_->all_reduce(data, call.count, call.dtype, call.op, deadline, call.algorithm);
      case Kind::kReduceScatter:
        return nccl_->reduce_scatter(data, call.count, call.dtype, call.op, deadline);
      case Kind::kAllGather:
        return nccl_->all_gather(data, call.count, call.dtype, deadline);
      case Kind::kBroadcast:
        return nccl_->broadcast(data, call.count, call.dtype, call.root, deadline);
      case Kind::kBarrier:
        return nccl_->barrier(deadline);
    }
    return absl::InternalError("unknown collective");
  }

  nccl::Gpu& gpu_;
  const std::unique_ptr<NcclCommunicator> nccl_;
  const Clock& clock_;
};

// Ranks that make their communicator anew, or shrink it from that of a view that had one more, its rank 1.
class Gpus final : public Wiring {
 public:
  explicit Gpus(bool shrunk) : shrunk_(shrunk) {
    cuda::fake().reset();
    cuda::fake().control().devices = 16;
    nccl::fake_library().reset();
  }
  ~Gpus() override {
    EXPECT_EQ(nccl::fake_library().counts().communicators, 0U);
    gpus_.clear();
    EXPECT_THAT(cuda::fake().problems(), ::testing::IsEmpty());
    EXPECT_THAT(nccl::fake_library().problems(), ::testing::IsEmpty());
    EXPECT_EQ(cuda::fake().counts().allocations, 0U);
  }

  std::vector<std::unique_ptr<Communicator>> connect(int size, Generation generation,
                                                     const Clock& clock) override {
    const std::size_t first = gpus_.size();
    for (int r = 0; r <= size; ++r) gpus_.push_back(std::make_unique<nccl::Gpu>(r));
    Made made(static_cast<std::size_t>(size));
    if (shrunk_) {
      made = make(Made(made.size() + 1), first, Generation{generation.value + 1}, clock);
      for (const auto& parent : made) EXPECT_TRUE(parent->keep());
      made.erase(made.begin() + 1);
      gpus_.erase(gpus_.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    }
    made = make(std::move(made), first, generation, clock);
    std::vector<std::unique_ptr<Communicator>> ranks;
    for (std::size_t i = 0; i < made.size(); ++i)
      ranks.push_back(std::make_unique<Carrying>(*gpus_[first + i], std::move(made[i]), clock));
    EXPECT_EQ(nccl::fake_library().counts().shrinks, shrunk_ ? ranks.size() : 0U);
    return ranks;
  }

 private:
  using Made = std::vector<std::unique_ptr<NcclCommunicator>>;

  // One for each of `parents`, which may be null.
  Made make(Made parents, std::size_t first_gpu, Generation generation, const Clock& clock) {
    const auto library = nccl::must(nccl::Library::open(binary_path(PACELINE_FAKE_NCCL)));
    const auto size = static_cast<int>(parents.size());
    auto hosts = make_in_process_group(size, generation, clock);
    Made made(parents.size());
    run_ranks(size, [&](int r) {
      const auto i = static_cast<std::size_t>(r);
      nccl::Setup setup;
      setup.library = library;
      setup.context = gpus_[first_gpu + i]->context;
      setup.host = std::move(hosts[i]);
      // A machine that is busy with other things does not make it give up.
      setup.limits.leaving = setup.limits.abort = setup.limits.shrink = std::chrono::seconds(60);
      setup.keeps = shrunk_;
      setup.parent = std::move(parents[i]);
      made[i] = nccl::must(NcclCommunicator::create(std::move(setup), clock,
                                                    Deadline::after(clock.now(), std::chrono::seconds(60))));
    });
    return made;
  }

  const bool shrunk_;
  std::vector<std::unique_ptr<nccl::Gpu>> gpus_;
};

}  // namespace

std::vector<Medium> media() {
  return {Medium::kNccl, Medium::kNcclShrunk};
}

std::unique_ptr<Wiring> make_wiring(Medium medium) {
  return std::make_unique<Gpus>(medium == Medium::kNcclShrunk);
}

}  // namespace paceline::collective
