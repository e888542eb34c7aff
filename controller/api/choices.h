#pragma once

// The names that stand in YAML for each enumeration, in the order of its values; those kept for later
// versions come last.

#include <span>

#include "controller/api/types.h"

namespace paceline::api {

struct Choice {
  const char* name;
  bool reserved = false;  // named in the design, refused by this version
};

// The position of a name is the enumeration's value.
template <typename Enum>
std::span<const Choice> choices_of();

inline constexpr Choice kStrategyTypes[] = {{"AllReduce"}, {"ParameterServer"}};
inline constexpr Choice kSynchronizations[] = {
    {"Synchronous"}, {"Asynchronous"}, {"BoundedStaleness"}, {"LocalSteps", true}, {"Delayed", true}};
inline constexpr Choice kTransports[] = {{"Auto"}, {"SharedMemory"}, {"TCP"}};
inline constexpr Choice kAlgorithms[] = {
    {"Auto"}, {"Ring"}, {"RecursiveDoubling"}, {"HalvingDoubling"}, {"Direct"}};
inline constexpr Choice kRestartPolicies[] = {{"Never"}, {"Always"}, {"OnFailure"}, {"ExitCode"}};
inline constexpr Choice kCleanPodPolicies[] = {{"Running"}, {"All"}, {"None"}};
inline constexpr Choice kModelTypes[] = {{"mlp"}, {"cnn"}, {"gpt"}, {"custom"}, {"wide-and-deep"}};
inline constexpr Choice kRowOptimizerTypes[] = {{"SGD"}, {"Adagrad"}, {"Adam"}, {"FTRL"}};
inline constexpr Choice kEvictions[] = {{"LeastRecent"}, {"LeastFrequent"}};
inline constexpr Choice kActivations[] = {{"ReLU"}, {"GELU"}, {"Tanh"}};
inline constexpr Choice kDataFormats[] = {{"idx"}, {"cifar10"}, {"tokens"}, {"text"},
                                          {"npy"}, {"csv"},     {"custom"}, {"clicks"}};
inline constexpr Choice kTokenTypes[] = {{"uint16"}, {"uint32"}};
inline constexpr Choice kSeparators[] = {{"comma"}, {"semicolon"}, {"tab"}};
inline constexpr Choice kOptimizerTypes[] = {{"SGD"}, {"Adam"}, {"AdamW"}, {"Adagrad"}};
inline constexpr Choice kScheduleTypes[] = {{"Constant"}, {"Step"}, {"Cosine"}};
inline constexpr Choice kPrecisions[] = {{"FP32"}, {"BF16"}};

// clang-format off
template <> inline std::span<const Choice> choices_of<StrategyType>() { return kStrategyTypes; }
template <> inline std::span<const Choice> choices_of<Synchronization>() { return kSynchronizations; }
template <> inline std::span<const Choice> choices_of<Transport>() { return kTransports; }
template <> inline std::span<const Choice> choices_of<Algorithm>() { return kAlgorithms; }
template <> inline std::span<const Choice> choices_of<RestartPolicy>() { return kRestartPolicies; }
template <> inline std::span<const Choice> choices_of<CleanPodPolicy>() { return kCleanPodPolicies; }
template <> inline std::span<const Choice> choices_of<ModelType>() { return kModelTypes; }
template <> inline std::span<const Choice> choices_of<RowOptimizerType>() { return kRowOptimizerTypes; }
template <> inline std::span<const Choice> choices_of<Eviction>() { return kEvictions; }
template <> inline std::span<const Choice> choices_of<Activation>() { return kActivations; }
template <> inline std::span<const Choice> choices_of<DataFormat>() { return kDataFormats; }
template <> inline std::span<const Choice> choices_of<TokenType>() { return kTokenTypes; }
template <> inline std::span<const Choice> choices_of<Separator>() { return kSeparators; }
template <> inline std::span<const Choice> choices_of<OptimizerType>() { return kOptimizerTypes; }
template <> inline std::span<const Choice> choices_of<ScheduleType>() { return kScheduleTypes; }
template <> inline std::span<const Choice> choices_of<Precision>() { return kPrecisions; }
// clang-format on

}  // namespace paceline::api
