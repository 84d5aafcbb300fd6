"""
Carries out plans on nodes: the record of a run, Ansible, and the site's drain command.

Adapter: decides nothing (that is :mod:`hwcheck.rollout`) and judges nothing (readings are passed in). Only
:mod:`.ansible` imports ansible-runner.
"""
