// Convolutions as products of matrices (runtime/cuda/windows.h), some images at a time: their columns lie in
// the operator's scratch.

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/matmul.h"
#include "runtime/tensor/gpu/operators.h"
#include "runtime/tensor/memory_plan.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Elementwise;
using cuda::MatMul;
using cuda::Stream;
using cuda::Windows;
using cuda::WindowShape;

// Of the columns of the images that are worked on at a time.
constexpr std::size_t kMostColumnsBytes = std::size_t{128} << 20;
constexpr std::uint32_t kMostImages = 32'768;  // what a transposition takes

// All of one convolution's work, cut into pieces of whole images.
struct Pieces {
  WindowShape shape;  // of one image
  std::uint32_t images = 0, filters = 0;
  std::uint32_t piece = 0;  // images; the last piece may be smaller
  std::size_t element = 4;  // bytes

  std::uint32_t last() const { return images % piece == 0 ? piece : images % piece; }
  WindowShape of(std::uint32_t count) const {
    WindowShape s = shape;
    s.images = count;
    return s;
  }
  std::uint32_t plane() const { return shape.out_height * shape.out_width; }
  std::int64_t positions(std::uint32_t count) const { return std::int64_t{count} * plane(); }
  std::size_t image_bytes() const {
    return std::size_t{shape.channels} * shape.height * shape.width * element;
  }
  std::size_t result_bytes() const { return std::size_t{filters} * plane() * element; }
  std::size_t columns_bytes() const { return std::size_t{piece} * plane() * shape.patch() * element; }
};

absl::StatusOr<Pieces> cut(const GpuLowering& lowering, const Dims& x, const Dims& weight, const Dims& y,
                           const Attributes& attributes) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  Pieces pieces;
  pieces.shape = {.images = 1,
                  .channels = u32(x[1]),
                  .height = u32(x[2]),
                  .width = u32(x[3]),
                  .out_height = u32(y[2]),
                  .out_width = u32(y[3]),
                  .window_height = u32(weight[2]),
                  .window_width = u32(weight[3]),
                  .stride = u32(attributes.stride),
                  .padding = u32(attributes.padding)};
  pieces.images = u32(x[0]);
  pieces.filters = u32(weight[0]);
  pieces.element = dtype_bytes(lowering.type());
  pieces.piece = 1;
  const std::size_t one = pieces.columns_bytes();
  pieces.piece = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(kMostColumnsBytes / one, 1, std::min(pieces.images, kMostImages)));
  constexpr std::size_t kMostElements = std::size_t{1} << 32;
  if (one / pieces.element >= kMostElements || pieces.image_bytes() / pieces.element >= kMostElements) {
    return absl::UnimplementedError(
        "an image's windows have more elements than the GPU's convolution counts; allowed: fewer than 2^32");
  }
  return pieces;
}

// A product for the pieces, and one for the last of them.
struct Products {
  std::shared_ptr<MatMul> whole, last;
  std::size_t workspace_bytes() const { return std::max(whole->workspace_bytes(), last->workspace_bytes()); }
  MatMul& of(const Pieces& pieces, std::uint32_t count) const {
    return count == pieces.piece ? *whole : *last;
  }
};

template <typename Shape>
absl::StatusOr<Products> plan_products(const GpuLowering& lowering, const Pieces& pieces, Shape shape) {
  Products products;
  PL_ASSIGN_OR_RETURN(MatMul whole, MatMul::plan(lowering.products(), shape(pieces.positions(pieces.piece))));
  products.whole = products.last = std::make_shared<MatMul>(std::move(whole));
  if (pieces.last() == pieces.piece) return products;
  PL_ASSIGN_OR_RETURN(MatMul last, MatMul::plan(lowering.products(), shape(pieces.positions(pieces.last()))));
  products.last = std::make_shared<MatMul>(std::move(last));
  return products;
}

// Columns, the result with its filters last, and what products and sums need, behind each other.
struct Scratch {
  Scratch(const Pieces& pieces, std::size_t workspace_bytes, std::size_t sums_bytes)
      : result(padded(pieces.columns_bytes())),
        workspace(result + padded(pieces.result_bytes() * pieces.piece)),
        sums(workspace + padded(workspace_bytes)),
        end(sums + sums_bytes) {}
  static std::size_t padded(std::size_t bytes) {
    return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  }
  static std::byte* at(const Addresses& a, std::size_t offset) {
    return static_cast<std::byte*>(a.scratch) + offset;
  }

  std::size_t result, workspace, sums, end;
};

// each(first image, images)
template <typename Each>
absl::Status for_pieces(const Pieces& pieces, Each each) {
  for (std::uint32_t at = 0; at < pieces.images; at += pieces.piece)
    PL_RETURN_IF_ERROR(each(at, std::min(pieces.piece, pieces.images - at)));
  return absl::OkStatus();
}

// x, weight[, bias] -> y
absl::StatusOr<Lowered> conv_forward(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  const bool bias = operation.inputs.size() > 2;
  PL_ASSIGN_OR_RETURN(
      const Pieces pieces,
      cut(lowering, lowering.tensor(operation.inputs[0]).dims, lowering.tensor(operation.inputs[1]).dims,
          lowering.tensor(operation.outputs[0]).dims, operation.attributes));
  PL_ASSIGN_OR_RETURN(const Products products, plan_products(lowering, pieces, [&](std::int64_t positions) {
                        return cuda::Product{.m = positions,
                                             .n = pieces.filters,
                                             .k = pieces.shape.patch(),
                                             .b_transposed = true,
                                             .inputs = type,
                                             .output = type,
                                             .bias = bias};
                      }));
  const Scratch scratch(pieces, products.workspace_bytes(), 0);
  const Windows& windows = lowering.kernels().windows;
  const Elementwise& elementwise = lowering.kernels().elementwise;
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const bool relu = operation.relu;
  const auto body = [=, &windows, &elementwise](const Addresses& a, const RunContext&,
                                                Stream& stream) -> absl::Status {
    void* const result = Scratch::at(a, scratch.result);
    PL_RETURN_IF_ERROR(for_pieces(pieces, [&](std::uint32_t at, std::uint32_t count) -> absl::Status {
      PL_RETURN_IF_ERROR(windows.columns(stream, type,
                                         {.x = in<std::byte>(a, 0) + at * pieces.image_bytes(),
                                          .columns = a.scratch,
                                          .shape = pieces.of(count)}));
      PL_RETURN_IF_ERROR(products.of(pieces, count)
                             .run(stream, {.a = a.scratch,
                                           .b = a.inputs[1],
                                           .c = result,
                                           .bias = bias ? a.inputs[2] : nullptr,
                                           .workspace = Scratch::at(a, scratch.workspace)}));
      return windows.transpose(stream, type,
                               {.from = result,
                                .to = out<std::byte>(a, 0) + at * pieces.result_bytes(),
                                .rows = pieces.plane(),
                                .columns = pieces.filters},
                               count);
    }));
    if (!relu) return absl::OkStatus();
    return elementwise.apply(stream, Elementwise::Function::kRelu, type, a.outputs[0], a.outputs[0], n);
  };
  return Lowered{{scratch.end}, body, std::vector<DType>(operation.inputs.size(), type), {type}};
}

// g, with its filters last.
absl::Status filters_last(const Windows& windows, Stream& stream, DType type, const Pieces& pieces,
                          const void* g, std::uint32_t at, std::uint32_t count, void* to) {
  return windows.transpose(stream, type,
                           {.from = static_cast<const std::byte*>(g) + at * pieces.result_bytes(),
                            .to = to,
                            .rows = pieces.filters,
                            .columns = pieces.plane()},
                           count);
}

// g, weight -> dx
absl::StatusOr<Lowered> conv_backward_data(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  PL_ASSIGN_OR_RETURN(
      const Pieces pieces,
      cut(lowering, lowering.tensor(operation.outputs[0]).dims, lowering.tensor(operation.inputs[1]).dims,
          lowering.tensor(operation.inputs[0]).dims, operation.attributes));
  PL_ASSIGN_OR_RETURN(
      const Products products, plan_products(lowering, pieces, [&](std::int64_t positions) {
        return cuda::Product{
            .m = positions, .n = pieces.shape.patch(), .k = pieces.filters, .inputs = type, .output = type};
      }));
  const Scratch scratch(pieces, products.workspace_bytes(), 0);
  const Windows& windows = lowering.kernels().windows;
  const auto body = [=, &windows](const Addresses& a, const RunContext&, Stream& stream) {
    void* const g = Scratch::at(a, scratch.result);
    return for_pieces(pieces, [&](std::uint32_t at, std::uint32_t count) -> absl::Status {
      PL_RETURN_IF_ERROR(filters_last(windows, stream, type, pieces, a.inputs[0], at, count, g));
      PL_RETURN_IF_ERROR(products.of(pieces, count)
                             .run(stream, {.a = g,
                                           .b = a.inputs[1],
                                           .c = a.scratch,
                                           .workspace = Scratch::at(a, scratch.workspace)}));
      return windows.images(stream, type,
                            {.columns = a.scratch,
                             .dx = out<std::byte>(a, 0) + at * pieces.image_bytes(),
                             .shape = pieces.of(count)});
    });
  };
  return Lowered{{scratch.end}, body, {type, type}, {type}};
}

// x, g -> dweight[, dbias]
absl::StatusOr<Lowered> conv_backward_weights(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  const Tensor& dweight = lowering.tensor(operation.outputs[0]);
  const bool bias = operation.outputs.size() > 1;
  PL_ASSIGN_OR_RETURN(const Pieces pieces,
                      cut(lowering, lowering.tensor(operation.inputs[0]).dims, dweight.dims,
                          lowering.tensor(operation.inputs[1]).dims, operation.attributes));
  PL_ASSIGN_OR_RETURN(const Products products, plan_products(lowering, pieces, [&](std::int64_t positions) {
                        return cuda::Product{.m = pieces.filters,
                                             .n = pieces.shape.patch(),
                                             .k = positions,
                                             .a_transposed = true,
                                             .inputs = type,
                                             .output = DType::kF32};
                      }));
  const auto most_positions = static_cast<std::size_t>(pieces.positions(pieces.piece));
  const std::size_t sums =
      bias ? cuda::Columns::scratch_elements(most_positions, pieces.filters) * sizeof(float) : 0;
  const Scratch scratch(pieces, products.workspace_bytes(), sums);
  const Windows& windows = lowering.kernels().windows;
  const cuda::Columns& columns = *lowering.kernels().columns;
  const bool adds = dweight.adds, bias_adds = bias && lowering.tensor(operation.outputs[1]).adds;
  const auto body = [=, &windows, &columns](const Addresses& a, const RunContext& context, Stream& stream) {
    void* const g = Scratch::at(a, scratch.result);
    return for_pieces(pieces, [&](std::uint32_t at, std::uint32_t count) -> absl::Status {
      const bool more = context.accumulate || at > 0;
      PL_RETURN_IF_ERROR(windows.columns(stream, type,
                                         {.x = in<std::byte>(a, 0) + at * pieces.image_bytes(),
                                          .columns = a.scratch,
                                          .shape = pieces.of(count)}));
      PL_RETURN_IF_ERROR(filters_last(windows, stream, type, pieces, a.inputs[1], at, count, g));
      PL_RETURN_IF_ERROR(products.of(pieces, count)
                             .run(stream, {.a = g,
                                           .b = a.scratch,
                                           .c = a.outputs[0],
                                           .workspace = Scratch::at(a, scratch.workspace),
                                           .accumulate = adds || more}));
      if (!bias) return absl::OkStatus();
      return columns.sums(stream, type, g, out<float>(a, 1), bias_adds || more,
                          reinterpret_cast<float*>(Scratch::at(a, scratch.sums)),
                          static_cast<std::size_t>(pieces.positions(count)), pieces.filters);
    });
  };
  return Lowered{{scratch.end}, body, {type, type}, {}};
}

}  // namespace

absl::StatusOr<Lowered> make_conv(GpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kConv2d:
      return conv_forward(lowering, operation);
    case OperationKind::kConv2dBackwardData:
      return conv_backward_data(lowering, operation);
    case OperationKind::kConv2dBackwardWeights:
      return conv_backward_weights(lowering, operation);
    default:
      return absl::UnimplementedError("not a convolution");
  }
}

}  // namespace paceline::tensor::gpu
