#pragma once

// oneDNN's primitives as this folder uses them: arguments bound once, scratchpads given by us, exceptions
// turned into absl::Status.

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace paceline::tensor::cpu {

using Layout = dnnl::memory::desc;
inline constexpr auto kF32 = dnnl::memory::data_type::f32;

// One engine and one stream; one thread at a time.
struct DnnlContext {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// Row-major.
Layout plain_layout(const std::vector<std::int64_t>& dims,
                    dnnl::memory::data_type type = dnnl::memory::data_type::f32);
bool is_plain(const Layout& layout);
// Holds elements that belong to no value (channels rounded up to a block).
bool is_padded(const Layout& layout);
Layout with_type(const Layout& layout, dnnl::memory::data_type type);

// Attributes with which a primitive takes its scratchpad from us.
dnnl::primitive_attr user_scratchpad();

// Runs `make`, which makes a primitive; a dnnl::error becomes UNIMPLEMENTED with its text. RESOURCE_EXHAUSTED
// where memory is short, also without having tried: where there is no room for the code that oneDNN makes for
// a primitive, it writes that to address 0.
absl::Status dnnl_guard(const std::function<void()>& make);

// Hands out parts of one operator's scratch memory.
class Scratch {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

// A primitive with its arguments. Addresses are bound before the first run; run() itself allocates nothing
// but oneDNN's own map of arguments.
class DnnlPrimitive {
 public:
  DnnlPrimitive() = default;
  DnnlPrimitive(const DnnlContext& context, const dnnl::primitive& primitive)
      : context_(&context), primitive_(primitive) {}

  // Declares argument `argument` (DNNL_ARG_...) of that layout; returns its number for bind().
  std::size_t argument(int argument, const Layout& layout);
  void bind(std::size_t number, void* address);
  void run() const;
  bool valid() const { return context_ != nullptr; }

 private:
  const DnnlContext* context_ = nullptr;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// A copy from one layout or type to another.
class LayoutChange {
 public:
  LayoutChange() = default;
  LayoutChange(const DnnlContext& context, const Layout& from, const Layout& to, Scratch& scratch);
  void bind(const void* from, void* to, void* scratch);
  void run() const { primitive_.run(); }

 private:
  DnnlPrimitive primitive_;
  std::size_t scratch_offset_ = 0;
};

}  // namespace paceline::tensor::cpu
