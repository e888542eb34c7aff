#pragma once

// What is trained on what: the data sets of a job, and a compiler of its model. Made once per member; the
// trainer sees nothing else of models, devices and file formats.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/data/open.h"
#include "runtime/exchange/device_exchange.h"
#include "runtime/model/wide_and_deep.h"
#include "runtime/optimizer/device_state.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/program.h"

namespace paceline::trainer {

enum class Purpose : std::uint8_t { kTraining, kEvaluation };

// The state of a replica on the device that a workload's programs are compiled for. The device's errors.
using MakeDeviceState = std::function<absl::StatusOr<std::unique_ptr<optimizer::DeviceState>>(
    const v1::OptimizerSpec& spec, const tensor::ParameterLayout& layout)>;

struct Workload {
  data::Datasets data;
  // A program for batches of at most `max_rows` samples, which leaves so much of the device's memory. All
  // programs of a workload have the same parameters. INVALID_ARGUMENT: the model doesn't fit the data;
  // RESOURCE_EXHAUSTED as of tensor::compile().
  std::function<absl::StatusOr<std::unique_ptr<tensor::Program>>(Purpose purpose, std::int64_t max_rows,
                                                                 const tensor::LeftRoom& leave)>
      compile;
  // For the check before the first step: a program that only evaluates, on the same device. A forward pass of
  // max_rows() is the same work on all devices of a kind. Null: there is none.
  std::function<absl::StatusOr<std::unique_ptr<tensor::Program>>()> compile_probe = nullptr;
  // Of a model with sparse tables (table_specs()): what its samples look up. Their tokens go there, and not
  // into the program, which takes the rows.
  std::optional<model::WideAndDeepShape> sparse = std::nullopt;
  // Null: the device's memory is the host's. Programs may be bound to the state that it makes.
  MakeDeviceState make_state = nullptr;
  // Null: the devices can't exchange by themselves, for the reason that is said.
  exchange::OpenDeviceExchange open_exchange = nullptr;
  std::function<void()> let_exchange_go = nullptr;  // what that keeps for the next view; may be null
  std::string why_no_exchange = {};
  // RESOURCE_EXHAUSTED where what a member keeps finds no room in this machine's memory (memory_budget.h).
  // Null: nobody looks.
  std::function<absl::Status()> check_host = nullptr;
  // Where programs have memory of their own: how it is now, how it was before anything was taken of it, and
  // whose it is ("GPU-4b1d..."), the same for all members on that device. Null and empty: it is the host's.
  std::function<absl::StatusOr<tensor::MemoryRoom>()> room = nullptr;
  tensor::MemoryRoom room_at_begin = {};
  std::size_t weight_bytes = 0;  // that a copy of the weights takes there
  std::string device_id = {};
};

using OpenWorkload = std::function<absl::StatusOr<Workload>(const v1::TrainingSpec& spec)>;

}  // namespace paceline::trainer
