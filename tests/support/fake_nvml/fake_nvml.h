#pragma once

// A libnvidia-ml.so.1 of the tests, that a test opens by its path: one GPU that says what the test wants.
// Thread-safe but for control().

#include <nvml.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace paceline::fake_nvml {

struct Control {
  std::string uuid =
      "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0";  // as that of tests/support/fake_cuda's first
  // A MIG instance of it, by NVML's name; empty: there is none. It tells of its memory alone.
  std::string mig_uuid;
  unsigned mig_instance = 3;
  unsigned long long mig_memory_total = 19'968ULL << 20;
  std::map<std::string, nvmlReturn_t> results;  // by call: what is not NVML_SUCCESS
  unsigned utilization = 93, memory_utilization = 41;
  unsigned long long memory_total = 143'771ULL << 20, memory_reserved = 600ULL << 20,
                     memory_used = (61'234ULL << 20) + 1;
  unsigned sm_clock = 1755, most_sm_clock = 1980, memory_clock = 3201, most_memory_clock = 3202;
  int temperature = 54;
  unsigned power = 612'345, power_limit = 700'000;  // milliwatts
  unsigned long long throttle_reasons = 0;
  unsigned long long corrected = 7, uncorrected = 0;
  unsigned replays = 2;
  std::deque<std::uint64_t> xids;      // that are not told yet
  unsigned xid_instance = 0xffffffff;  // whose they are; this: the whole GPU's
};

class FakeNvml {
 public:
  virtual Control& control() = 0;
  virtual int begun() = 0;  // nvmlInit without its nvmlShutdown
  virtual int event_sets() = 0;
  // As when it was loaded.
  virtual void reset() = 0;

 protected:
  ~FakeNvml() = default;
};

// The library exports this.
using Get = FakeNvml* (*)();
inline constexpr char kGet[] = "paceline_fake_nvml";

}  // namespace paceline::fake_nvml
