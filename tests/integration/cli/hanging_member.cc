// A member whose data set hangs: once there is a file, no read of a batch returns. Else it is as
// paceline-worker. Parameters of the data set: member, "worker-1" (of its first incarnation), and file.

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "runtime/bin/run_member.h"

namespace {

namespace data = paceline::data;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class HangingData final : public data::Dataset {
 public:
  explicit HangingData(std::string file) : file_(std::move(file)) {
    shape_.dims = {8};
    shape_.classes = 2;
  }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 4096; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                     const data::BatchView& batch) const override {
    while (!file_.empty() && ::access(file_.c_str(), F_OK) == 0) ::pause();
    for (std::size_t row = 0; row < indices.size(); ++row) {
      batch.labels[row] = static_cast<std::int32_t>(indices[row] % 2);
      for (std::size_t i = 0; i < 8; ++i) {
        batch.inputs[8 * row + i] = static_cast<float>((indices[row] >> i) & 1);
      }
    }
    return absl::OkStatus();
  }

 private:
  data::SampleShape shape_;
  const std::string file_;  // empty: it never hangs
};

absl::StatusOr<data::Datasets> make_hanging_data(const std::map<std::string, std::string>& parameters,
                                                 std::uint64_t /*seed*/) {
  const std::string self = variable("PACELINE_ROLE") + "-" + variable("PACELINE_INDEX");
  const bool hangs = parameters.at("member") == self && variable("PACELINE_INCARNATION") == "0";
  data::Datasets sets;
  sets.train = std::make_shared<HangingData>(hangs ? parameters.at("file") : "");
  return sets;
}

}  // namespace

int main(int argc, char** argv) {
  paceline::trainer::Registry registry;
  registry.add_dataset("hanging", make_hanging_data);
  return paceline::run_member(argc, argv, std::move(registry));
}
