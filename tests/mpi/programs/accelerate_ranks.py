"""Saves or loads a sharded model and its optimizer by the functions of Accelerate, which
``Accelerator.save_state`` calls on accelerators: ``accelerate_ranks.py save|load DIRECTORY``.

Rank 0 prints the tensors.
"""

import sys

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import (
    load_fsdp_model,
    load_fsdp_optimizer,
    save_fsdp_model,
    save_fsdp_optimizer,
)
from torch.distributed.fsdp import fully_shard

from pario.checkpoint.dcp import replace_file_system_storage


def main(action: str, directory: str) -> None:
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(1 if action == "save" else 2)
    model = fully_shard(torch.nn.Linear(5, 7))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.125 if action == "save" else 0.0)
    model(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type="SHARDED_STATE_DICT")
    replace_file_system_storage(durable=False)
    if action == "save":
        save_fsdp_model(plugin, accelerator, model, directory)
        save_fsdp_optimizer(plugin, accelerator, optimizer, model, directory)
    else:
        load_fsdp_model(plugin, accelerator, model, directory)
        load_fsdp_optimizer(plugin, accelerator, optimizer, model, directory)
    moments = [state["exp_avg"] for state in optimizer.state.values()]
    found = [one.full_tensor().tolist() for one in (*model.parameters(), *moments)]
    accelerator.print(found, optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main(*sys.argv[1:])
