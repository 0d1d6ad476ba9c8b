import torch

from axformer.architectures.hard_attention import TOP_K_ATTRIBUTE, HardAttentionDropout, attention_forward, keep_top_k


def test_the_dropout_of_inline_attention_keeps_what_the_function_keeps() -> None:
    probabilities = torch.rand(2, 3, 4, 9).softmax(dim=-1)
    module = torch.nn.Module()
    module.dropout = torch.nn.Dropout(0.1).eval()
    HardAttentionDropout.put_into([module])
    dropout = module.dropout
    assert torch.equal(dropout(probabilities), probabilities)
    setattr(dropout, TOP_K_ATTRIBUTE, 4)
    assert torch.equal(dropout(probabilities), keep_top_k(probabilities, 4))
    output = torch.rand(4, 2, 9)
    assert torch.equal(dropout(output), output), "what is not attention goes through as it is"


def test_grouped_queries_share_keys_and_values() -> None:
    query, key, value = torch.rand(2, 4, 5, 8), torch.rand(2, 2, 5, 8), torch.rand(2, 2, 5, 8)
    grouped, _ = attention_forward(torch.nn.Module(), query, key, value, None)
    alone = [
        attention_forward(torch.nn.Module(), query[:, [h]], key[:, [h // 2]], value[:, [h // 2]], None)
        for h in range(4)
    ]
    torch.testing.assert_close(grouped, torch.cat([context for context, _ in alone], dim=2))
